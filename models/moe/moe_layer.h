// From a scenario's MoE section to what one layer and micro-batch costs: draws or reads the counts, runs the chosen
// dispatcher on them and on perfectly balanced ones. The step model scales its balanced prediction by the ratios, gives
// every EP rank its own rows (stragglers), and takes memory and synchronisation from the result.
//   lognormal  sigma per layer and micro-batch: the lasting skew is what a global-batch bias removes
//   dirichlet  alpha = 1 / (exp(sigma^2) - 1), the same coefficient of variation as the log-normal
//   file       counts of (layer, micro-batch), cycling through those that the file has
// Source: issue of the MoE model; k3-facts sections 2.9 (bias per global batch) and 3.7. Valid for ep dividing experts.
#pragma once

#include <vector>

#include "models/config/scenario.h"
#include "models/moe/counts_csv.h"
#include "models/moe/dispatcher.h"
#include "models/moe/routing.h"

namespace k3sim {

struct MoeLayerSetup {
  FfnSpec ffn;
  std::int64_t hidden = 0;
  MoeConfig config;
  int ep = 1;
  int domain_ranks = 8;              // EP ranks that share an NVLink domain
  std::int64_t tokens_per_rank = 0;  // of one micro-batch
  double dispatch_bytes_per_value = 2.0;
  double combine_bytes_per_value = 2.0;
  DispatchRates rates;
};

struct MoeLayerPlan {
  DispatchResult routed;
  DispatchResult balanced;
  std::vector<std::int64_t> expert_rows;  // tokens per expert, over all source ranks

  double dispatch_ratio() const;  // time of the routed dispatch over the balanced one, at least 1 for skewed routing
  double combine_ratio() const;
  double row_ratio(int rank) const;  // padded rows of the rank over the balanced rank's
};

class MoeLayerModel {
 public:
  // Reads the counts file when the routing source is one. Throws ConfigError for a bad file, for experts that do not
  // divide over the ranks and for an unknown dispatcher.
  explicit MoeLayerModel(MoeLayerSetup setup);

  // What EPLB's placement is made from: a layer's lasting popularity, or the mean of its tables in a counts file.
  ExpertCounts history(int layer) const;

  MoeLayerPlan plan(MicroBatchId id) const;
  ExpertCounts counts(MicroBatchId id) const;
  // Micro-batches of the counts file's longest layer; 0 without a file.
  int file_micro_batches() const;

 private:
  DispatchResult run(ExpertCounts counts, const ExpertCounts* history) const;

  MoeLayerSetup setup_;
  RoutingSpec routing_;
  RoutingShape shape_;
  std::vector<RoutedCounts> file_counts_;
  DispatchFunction dispatch_;
  DispatchResult balanced_;
};

// The routing law of a scenario's MoE section for layers of this kind.
RoutingSpec routing_spec(const RoutingConfig& config, const FfnSpec& ffn);

// Every token number as equal as integers allow: K s entries per rank spread evenly over all experts.
ExpertCounts balanced_counts(const RoutingShape& shape);

}  // namespace k3sim
