#include "tools/commands/plan_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/planner/fit.h"
#include "tools/planner/fit_frontier.h"
#include "tools/result_pages/plan_page.h"

namespace k3sim {

namespace {

std::string answer_text(const FitAnswer& a, bool colour) {
  if (a.nodes == 0) return fmt::format("{}: no layout of the space fits\n", a.gpu);
  std::string out = fmt::format("{}: {} node{} ({} GPUs) with {}\n", a.gpu, a.nodes, a.nodes == 1 ? "" : "s",
                                a.scenario.cluster.gpus(), a.layout);
  out += fmt::format("  what binds: {}, {:.1f} GiB on the fullest stage\n", a.binding, a.binding_gib);
  TextTable stages({"stage", "used GiB", "margin GiB"});
  for (const RankMemory& m : a.memory)
    stages.add({fmt::format("{}", m.rank), fmt::format("{:.2f}", (m.reserved + m.outside).gibibytes()),
                fmt::format("{:.2f}", a.capacity.gibibytes() - (m.reserved + m.outside).gibibytes())});
  out += stages.to_text(colour);
  if (a.knobs.empty()) return out;
  const KnobEffect& best = a.knobs.front();
  if (best.freed_binding_gib > 0)
    out += fmt::format("  cheapest knob that frees it: {} ({:.1f} GiB, step {:+.1f} %)\n", best.name,
                       best.freed_binding_gib, best.step_change_pct);
  TextTable knobs({"knob", "frees GiB", "of " + a.binding, "step %", "nodes then"});
  for (const KnobEffect& k : a.knobs)
    knobs.add({k.name, fmt::format("{:.1f}", k.freed_gib), fmt::format("{:.1f}", k.freed_binding_gib),
               fmt::format("{:+.1f}", k.step_change_pct), fmt::format("{}", k.nodes)});
  out += knobs.to_text(colour);
  return out;
}

nlohmann::ordered_json answer_json(const FitAnswer& a) {
  nlohmann::ordered_json j{{"gpu", a.gpu}, {"nodes", a.nodes}, {"layout", a.layout}};
  if (a.nodes == 0) return j;
  j["gpus"] = a.scenario.cluster.gpus();
  j["binding"] = a.binding;
  j["binding_gib"] = a.binding_gib;
  j["capacity_gib"] = a.capacity.gibibytes();
  for (const RankMemory& m : a.memory)
    j["margin_gib"].push_back(a.capacity.gibibytes() - (m.reserved + m.outside).gibibytes());
  for (const KnobEffect& k : a.knobs)
    j["knobs"].push_back({{"name", k.name},
                          {"frees_gib", k.freed_gib},
                          {"frees_binding_gib", k.freed_binding_gib},
                          {"step_change_pct", k.step_change_pct},
                          {"nodes", k.nodes}});
  return j;
}

}  // namespace

int plan_fit(const SearchSpace& space, MachineStore& machines, const SearchOptions& options, const std::string& folder,
             CommandContext& context) {
  FitOptions fit;
  fit.evaluate = options.evaluate;
  fit.share = options.share;
  fit.knobs = options.share->writes();
  const std::vector<FitAnswer> answers = smallest_fit(space, machines, fit);
  const std::vector<FrontierPoint> frontier =
      folder.empty() ? std::vector<FrontierPoint>{} : fit_frontier(space, machines, fit);
  const bool any = std::any_of(answers.begin(), answers.end(), [](const FitAnswer& a) { return a.nodes > 0; });
  if (!options.share->writes()) return any ? 0 : 1;  // another rank reports
  if (!folder.empty()) {
    OutputFolder out(folder);
    add_results(out, {{"fit_frontier.csv", fit_frontier_table(frontier)}},
                fit_page(space, answers, frontier, context.command));
    out.add("fit_frontier.svg", fit_frontier_svg(frontier));
    out.commit();
  }
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const FitAnswer& a : answers) {
    j.push_back(answer_json(a));
    if (!context.json) context.out << answer_text(a, context.colour());
  }
  if (context.json) context.out << j.dump(2) << "\n";
  return any ? 0 : 1;
}

}  // namespace k3sim
