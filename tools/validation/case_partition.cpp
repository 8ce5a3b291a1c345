// Stages as frameworks cut them when the published table does not say. nanotron walks the blocks and hands each to the
// current stage; the stage is full when the cost so far exceeds its share of the whole. Cost: parameters of the matrix
// products of a decoder layer and of the output head; the embedding costs nothing.
// Source: nanotron/models/base.py (build_model), nanotron/models/llama.py (get_block_compute_costs).
#include "tools/validation/case_scenario.h"

namespace k3sim {

std::vector<int> nanotron_stage_layers(const CaseModel& m, int stages) {
  const auto layer = static_cast<double>(4 * m.heads * m.head_dim * m.hidden + 3 * m.ffn * m.hidden);
  const double whole = static_cast<double>(m.layers) * layer + static_cast<double>(m.vocab * m.hidden);
  std::vector<int> out(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 1; i <= m.layers; ++i) {
    ++out[stage];
    const double threshold = whole * (static_cast<double>(stage + 1) / stages);
    if (static_cast<double>(i) * layer > threshold && stage + 1 < out.size()) ++stage;
  }
  return out;
}

}  // namespace k3sim
