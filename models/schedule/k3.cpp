// The K3 schedule: interleaved 1F1B with the ordinary warm-up, and annotations for what happens inside a chunk.
//   forward : attention | SE1 beside dispatch | routed experts | SE2 beside combine
//   backward: SE2 beside combine-backward | routed experts, dispatch re-run beside their second half | W of the routed
//             experts | SE1 beside dispatch-backward | attention
// An action's annotations say which phases it has; the layer program turns them into tasks. With split_wgrad the routed
// experts' weight gradients are an action W of their own right after their backward I (which carries all other weight
// gradients), so the gradient travels upstream while W runs; overlap_send_with_wgrad (overlap.p2p of a
// scenario) lets W start without waiting for that send. Parameter gathers stand before every run of one chunk, the
// reduction after its last gradient.
//   bubble (p - 1)(F + I) / v with split_wgrad, (p - 1)(F + I + W) / v without (derived: the interleaved bubble, whose
//   last p - 1 backwards run upstream without W; the report publishes no form), activations as interleaved
// Source: k3-facts section 2.2 (technical report section 5.2, figure 11: 14 / 12 / 10 forwards before the first
// backward of ranks 0 / 1 / 2 for p = 3, v = 4, m = 6); Megatron-LM for the order.
#include <fmt/format.h>

#include "models/schedule/generators.h"
#include "models/schedule/interleaved.h"

namespace k3sim {

namespace {
void split_backwards(std::vector<Action>& row, const ScheduleSpec& spec) {
  std::vector<Action> out;
  out.reserve(row.size() * 2);
  for (Action a : row) {
    if (a.kind == ActionKind::kBackward) {
      a.flags |= kFlagRedispatch;
      if (spec.split_wgrad) {
        a.kind = ActionKind::kInputGrad;
        out.push_back(a);
        std::uint8_t flags = kFlagRoutedWeights;
        if (spec.overlap_send_with_wgrad) flags |= kFlagOverlapsSend;
        a = make_action(ActionKind::kWeightGrad, a.stage, a.microbatch, flags);
      }
    }
    out.push_back(a);
  }
  row = std::move(out);
}

void mark_parameter_phases(std::vector<Action>& row, int stages, int microbatches) {
  std::vector<int> gradients(static_cast<std::size_t>(stages), 0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool backward = row[i].kind != ActionKind::kForward;
    const bool same_pass =
        i > 0 && row[i - 1].stage == row[i].stage && backward == (row[i - 1].kind != ActionKind::kForward);
    if (!same_pass) row[i].flags |= kFlagGatherBefore;
    if (yields_weight_grad(row[i].kind) && ++gradients[static_cast<std::size_t>(row[i].stage)] == microbatches)
      row[i].flags |= kFlagReduceAfter;
  }
}
}  // namespace

Schedule generate_k3(const ScheduleSpec& spec) {
  Schedule s = generate_interleaved(spec);
  for (auto& row : s.actions) {
    split_backwards(row, spec);
    mark_parameter_phases(row, s.stages, s.microbatches);
  }
  return s;
}

}  // namespace k3sim
