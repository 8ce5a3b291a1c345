// Redundant experts placed offline (EPLB): from the counts of the past, the hottest experts get extra replicas and all
// physical experts are packed onto ranks; at run time an expert's rows are shared evenly by its replicas.
//   replicate  R * redundant_per_rank times: one more replica for the expert with most rows per replica
//   pack       physical experts in falling load, each to the least loaded rank with a free slot (ties: lowest)
// Transport, buffers and synchronisation as DeepEP. Every layer keeps the extra weights and FP32 gradients.
// Source: own statement of the greedy idea of deepseek-ai/EPLB and issue of the MoE model. Valid for any history;
// a stale one (policy.history) leaves the skew it did not see.
#include <algorithm>
#include <numeric>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"
#include "sim/base/check.h"

namespace k3sim {
namespace {

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

struct Placement {
  std::vector<std::vector<int>> ranks_of;    // [expert] ranks of its replicas, ascending
  std::vector<std::vector<int>> experts_on;  // [rank] experts in order of placement
};

std::vector<int> replicas_per_expert(const std::vector<std::int64_t>& load, int extra) {
  std::vector<int> replicas(load.size(), 1);
  for (int i = 0; i < extra; ++i) {
    std::size_t hottest = 0;
    for (std::size_t e = 1; e < load.size(); ++e) {
      if (load[e] * replicas[hottest] > load[hottest] * replicas[e]) hottest = e;  // load / replicas, without division
    }
    ++replicas[hottest];
  }
  return replicas;
}

Placement place(const ExpertCounts& history, int ranks, int redundant_per_rank) {
  const std::vector<std::int64_t> load = history.per_expert();
  const std::vector<int> replicas = replicas_per_expert(load, ranks * redundant_per_rank);
  const std::size_t slots = load.size() / sz(ranks) + sz(redundant_per_rank);
  std::vector<std::size_t> order(load.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return load[a] * replicas[b] > load[b] * replicas[a]; });
  Placement p{std::vector<std::vector<int>>(load.size()), std::vector<std::vector<int>>(sz(ranks))};
  std::vector<double> filled(sz(ranks), 0.0);
  for (const std::size_t e : order) {
    for (int i = 0; i < replicas[e]; ++i) {
      int best = -1;
      for (int r = 0; r < ranks; ++r) {
        if (p.experts_on[sz(r)].size() < slots && (best < 0 || filled[sz(r)] < filled[sz(best)])) best = r;
      }
      CS_CHECK(best >= 0, "no free slot for expert {}", e);
      filled[sz(best)] += static_cast<double>(load[e]) / replicas[e];
      p.experts_on[sz(best)].push_back(static_cast<int>(e));
      p.ranks_of[e].push_back(best);
    }
    std::sort(p.ranks_of[e].begin(), p.ranks_of[e].end());
  }
  return p;
}

}  // namespace

DispatchResult dispatch_eplb(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  const int ranks = w.counts.ranks;
  const ExpertCounts& history = policy.history != nullptr ? *policy.history : w.counts;
  CS_CHECK(history.experts == w.counts.experts, "history of {} experts for {}", history.experts, w.counts.experts);
  const Placement p = place(history, ranks, policy.redundant_per_rank);
  // A workload in which the physical experts are the experts, in rank order: then DeepEP's model applies as it is.
  DispatchWorkload physical = w;
  const int slots = w.counts.experts_per_rank() + policy.redundant_per_rank;
  physical.counts = ExpertCounts(ranks, ranks * slots);
  std::vector<int> next(sz(w.counts.experts), 0);  // replicas of an expert used so far, in rank order
  for (int r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < p.experts_on[sz(r)].size(); ++i) {
      const int e = p.experts_on[sz(r)][i], n = static_cast<int>(p.ranks_of[sz(e)].size()), k = next[sz(e)]++;
      for (int s = 0; s < ranks; ++s) {
        const std::int32_t tokens = w.counts.at(s, e);
        // Rows that do not divide go to replicas in turn, shifted by the source rank.
        physical.counts.at(s, r * slots + static_cast<int>(i)) = tokens / n + ((k + s) % n < tokens % n ? 1 : 0);
      }
    }
  }
  DispatchResult out = dispatch_deepep(physical, policy, rates);
  out.memory_per_layer =
      (replica_weight_bytes(w.expert) + replica_gradient_bytes(w.expert)) * policy.redundant_per_rank;
  for (int r = 0; r < ranks; ++r) out.ranks[sz(r)].replicas_received = policy.redundant_per_rank;
  return out;
}

}  // namespace k3sim
