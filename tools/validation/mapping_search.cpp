// See mapping_search.h. Source: arXiv:2405.15362 section 5.
#include "tools/validation/mapping_search.h"

namespace k3sim {

namespace {

// Parameters in BF16, FP32 gradients, optimizer states over dp: they must leave a tenth of the memory to activations.
bool states_fit(const Case& c, int tp, int pp, int dp) {
  constexpr double kMemory = 80e9, kShare = 0.9;
  return c.model.total_b * 1e9 / (tp * pp) * (6.0 + 12.0 / dp) < kShare * kMemory;
}

}  // namespace

bool is_grid_search(const Case& c) {
  return c.notes.find("grid search") != std::string::npos && !c.parallel.tp && !c.parallel.pp && c.gbs && !c.mbs;
}

std::vector<Case> grid_layouts(const Case& c) {
  std::vector<Case> out;
  const auto gbs = static_cast<int>(*c.gbs);
  for (int tp = 1; tp <= c.gpus_per_node; tp *= 2)
    for (int pp = 2; pp <= c.gpus / tp; ++pp) {
      if (c.gpus % (tp * pp) != 0 || static_cast<int>(c.model.layers) + 2 < 2 * pp) continue;
      const int dp = c.gpus / (tp * pp);
      if (!states_fit(c, tp, pp, dp)) continue;
      for (int mbs = 1; mbs <= 4; mbs *= 2) {
        if (gbs % (dp * mbs) != 0 || gbs / (dp * mbs) < 2 * pp) continue;
        Case layout = c;
        layout.parallel.tp = tp;
        layout.parallel.pp = pp;
        layout.parallel.dp = dp;
        layout.parallel.optimizer = "true";
        layout.mbs = mbs;
        out.push_back(std::move(layout));
      }
    }
  return out;
}

}  // namespace k3sim
