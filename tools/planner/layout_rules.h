// Divisibility and topology rules of a layout, in nanoseconds: the facts of the model are collected once, a check is a
// few integer divisions. Same rules as scenario_check.h (property test), plus: tensor parallelism stays in a node.
// Source: Megatron-LM (validate_args, initialize_model_parallel); engine-design section 16 (cheapest filter first).
#pragma once

#include <vector>

#include "models/config/scenario.h"
#include "tools/planner/reasons.h"

namespace k3sim {

struct Layout {
  int dp = 0;
  std::int64_t sequences = 0, microbatches = 0;
  int chunks = 0;  // model chunks: pp x vpp, as the schedule takes them
};

class LayoutRules {
 public:
  explicit LayoutRules(const ModelSpec& model);
  // Reason::ok and the resolved layout, or the first rule that is broken. Cross-node tensor parallelism is refused
  // unless `tp_across_nodes`.
  Reason check(const Scenario& scenario, Layout& layout, bool tp_across_nodes = false) const;

 private:
  bool splits_tensors(int tp) const;
  bool splits_experts(int ep, int etp) const;
  Reason check_batch(const Scenario& scenario, Layout& layout) const;
  Reason check_schedule(const Scenario& scenario, Layout& layout) const;

  std::int64_t layers_ = 0;
  std::vector<std::int64_t> divided_by_tp_, kv_heads_, divided_by_etp_, experts_;  // without duplicates
};

}  // namespace k3sim
