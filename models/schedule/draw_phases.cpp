// What happens inside the actions, as their annotations say: dispatch re-run, weight gradients of the routed experts
// apart, parameter gathers and gradient reductions. The picture follows figure 11 of the K3 report.
// Source: k3-facts section 2.2 (arXiv 2607.24653 section 5.2); models/schedule/action.h.
#include <fmt/format.h>

#include <algorithm>

#include "models/schedule/draw.h"

namespace k3sim {

std::string annotation_text(const Action& a) {
  std::string out;
  const auto say = [&](ActionFlag flag, const char* what) {
    if (a.flags & flag) out += (out.empty() ? "" : ", ") + std::string(what);
  };
  say(kFlagGatherBefore, "parameters gathered before");
  say(kFlagRedispatch, "dispatch re-run");
  say(kFlagRoutedWeights, "routed experts' weight gradients");
  say(kFlagOverlapsSend, "beside its own send");
  say(kFlagReduceAfter, "gradients reduced after");
  return out;
}

ScheduleNotes schedule_notes(const Schedule& s) {
  ScheduleNotes n;
  for (const auto& row : s.actions)
    for (const Action& a : row) {
      n.redispatches += (a.flags & kFlagRedispatch) != 0;
      n.routed_weights += (a.flags & kFlagRoutedWeights) != 0;
      n.beside_send += (a.flags & kFlagOverlapsSend) != 0;
      n.gathers += (a.flags & kFlagGatherBefore) != 0;
      n.reductions += (a.flags & kFlagReduceAfter) != 0;
      n.offloads += a.kind == ActionKind::kOffload;
    }
  return n;
}

std::string draw_phases(const Schedule& s) {
  const ScheduleNotes n = schedule_notes(s);
  std::string out;
  if (n.redispatches > 0) {
    const char* backward = n.routed_weights > 0 ? "I" : "B";
    out += "inside the actions of one layer, time to the right, streams below each other\n";
    out += "  F  compute        | attention |               | routed experts |              |\n";
    out += "     shared experts |           | SE1 (gate, up)|                | SE2 (down)   |\n";
    out += "     experts' comm. |           | dispatch      |                | combine      |\n";
    out += fmt::format(
        "  {}  compute        |               | routed experts backward         |{}              | attention |\n",
        backward, n.routed_weights > 0 ? "" : " W |");
    out += fmt::format(
        "     shared experts | SE2 backward  |                                 |{} SE1 backward |           |\n",
        n.routed_weights > 0 ? "" : "   |");
    out += fmt::format(
        "     experts' comm. | combine grad. |                | dispatch again |{} dispatch gr. |           |\n",
        n.routed_weights > 0 ? "" : "   |");
    if (n.routed_weights > 0)
      out += fmt::format("  W  compute        | weight gradients of the routed experts{} |\n",
                         n.beside_send > 0 ? ", beside the send of their backward" : "");
    out += fmt::format("{} backwards re-run the dispatch; {} weight-gradient blocks of the routed experts alone\n",
                       n.redispatches, n.routed_weights);
  }
  if (n.gathers + n.reductions > 0)
    out += fmt::format(
        "{} parameter gathers (before every run of one stage), {} gradient reductions (after a stage's last)\n",
        n.gathers, n.reductions);
  if (n.offloads > 0)
    out += fmt::format("{} micro-batches leave for another rank or the host and come back\n", n.offloads);
  return out;
}

}  // namespace k3sim
