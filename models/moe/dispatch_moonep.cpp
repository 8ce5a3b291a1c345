// MoonEP: the planner gives every rank its cap of rows, hot experts are copied to their receivers, rows go straight to
// their final place in a buffer of fixed size; no host synchronisation, no dynamic shapes.
//   plan       planner_fixed + s K * planner_per_entry
//   dispatch   fixed + remote distinct rows / NVLink;  epilogue expands duplicates, prologue pre-reduces them
//   replicate  replicate_fixed + the largest sender's weights / link rate; gradients (FP32) return off the path
// Beyond an NVLink domain (an assumption, the public code has no RDMA path): one RDMA copy per token and remote domain,
// one per replica and remote domain, then NVLink. moonep_hierarchical also prefers receivers of the donor's domain.
// Source: k3-facts sections 3.2, 3.6 and 3.8 (times within 15 %, golden test). Valid for large messages on Hopper.
#include <algorithm>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"
#include "models/moe/moonep_planner.h"

namespace k3sim {
namespace {

constexpr int kMoonepSms = 32;  // default of the public code, k3-facts section 3.8

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

// Counts one pushed copy of every replica on the links of its owner and its receiver.
void push_replicas(const DispatchWorkload& w, const MoonepPlan& plan, Hops hops, DispatchResult& out) {
  const Bytes weights = replica_weight_bytes(w.expert);
  for (int e = 0; e < plan.experts; ++e) {
    const int owner = plan.owner(e);
    int last_domain = -1, holder = -1;  // the last remote domain that got a copy, and the rank that did
    for (int d = 0; d < plan.ranks; ++d) {
      if (d == owner || plan.alloc_at(d, e) == 0) continue;
      const int domain = d / w.domain_ranks;
      LinkBytes& from = out.ranks[sz(owner)].replication;
      LinkBytes& to = out.ranks[sz(d)].replication;
      if (domain == owner / w.domain_ranks) {
        from.nvlink_sent += weights;
        to.nvlink_received += weights;
      } else if (hops == Hops::kTwo && domain == last_domain) {
        out.ranks[sz(holder)].replication.nvlink_sent += weights;
        to.nvlink_received += weights;
      } else {
        from.rdma_sent += weights;
        to.rdma_received += weights;
        last_domain = domain;
        holder = d;
      }
    }
  }
}

Time push_time(const DispatchResult& out, const DispatchRates& rates) {
  Time slowest;
  for (const RankDispatch& r : out.ranks) {
    const Time nvlink = std::max(r.replication.nvlink_sent, r.replication.nvlink_received) / rates.nvlink;
    const Time rdma = std::max(r.replication.rdma_sent, r.replication.rdma_received) / rates.rdma;
    slowest = std::max({slowest, nvlink, rdma});
  }
  return slowest == Time() ? slowest : rates.replicate_fixed + slowest;
}

void fill_groups(const MoonepPlan& plan, const DispatchWorkload& w, DispatchResult& out) {
  const int epn = plan.experts_per_rank();
  for (int r = 0; r < plan.ranks; ++r) {
    RankDispatch& rank = out.ranks[sz(r)];
    for (int i = 0; i < epn; ++i) rank.group_rows.push_back(plan.alloc_at(r, r * epn + i));
    for (int s = 0; s < plan.slots_per_rank; ++s) {
      const std::int32_t e = plan.slot_at(r, s);
      rank.group_rows.push_back(e < 0 ? 0 : plan.alloc_at(r, e));
    }
    rank.replicas_received = plan.replicas_received[sz(r)];
    rank.replicas_sent = plan.replicas_sent[sz(r)];
    rank.buffer = w.row_bytes() * plan.row_capacity;
  }
  count_rows(out, w.pad_rows);
}

DispatchResult run(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates,
                   double tolerance, bool prefer_own_domain) {
  const Hops hops = w.counts.ranks > w.domain_ranks ? Hops::kTwo : Hops::kSingle;
  PlannerOptions options;
  options.pad_rows = w.pad_rows;
  options.capacity_rows = policy.capacity_tokens * w.topk;
  options.tolerance = tolerance;
  options.domain_ranks = prefer_own_domain ? w.domain_ranks : 0;
  const MoonepPlan plan = plan_moonep(w.counts, options);
  DispatchResult out;
  out.ranks.resize(sz(w.counts.ranks));
  fill_groups(plan, w, out);
  copy_rows(w, deduplicated_traffic(w, entries_of_plan(w.counts, plan), hops), rates, out);
  push_replicas(w, plan, hops, out);
  const std::vector<std::int64_t> entries = w.counts.per_source_rank();
  out.time.plan = rates.planner_fixed + rates.planner_per_entry * *std::max_element(entries.begin(), entries.end());
  out.time.replicate = push_time(out, rates);
  out.time.gradient_return = 2 * out.time.replicate;  // FP32 against BF16, the same links backwards
  out.pool = replica_pool_bytes(w.expert, plan.experts_per_rank());
  out.sms = policy.sms > 0 ? policy.sms : kMoonepSms;
  return out;
}

}  // namespace

DispatchResult dispatch_moonep(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  return run(w, policy, rates, 0.0, false);
}

DispatchResult dispatch_moonep_tolerance(const DispatchWorkload& w, const DispatchPolicy& policy,
                                         const DispatchRates& rates) {
  return run(w, policy, rates, policy.tolerance, false);
}

DispatchResult dispatch_moonep_hierarchical(const DispatchWorkload& w, const DispatchPolicy& policy,
                                            const DispatchRates& rates) {
  return run(w, policy, rates, 0.0, true);
}

}  // namespace k3sim
