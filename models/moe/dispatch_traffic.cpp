// Traffic of an assignment, O(R^2 K): every source and destination pair gets its share of the source's entries, the
// hit probability of that share, and the links on the way.
// Source: hardware section 3.5, k3-facts section 3.6. Valid for ranks a multiple of the domain size, or one domain.
#include "models/moe/dispatch_traffic.h"

#include <algorithm>

#include "models/moe/grouped_rows.h"
#include "sim/base/check.h"

namespace k3sim {
namespace {

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

// Probabilities that a token of a source has at least one / at least two entries in a part holding `share` of them.
struct HitLaw {
  int experts;
  int topk;
  double admitted = 1.0;  // probability that the part's domain is among a token's domains
  int visible;            // experts of the admitted domains

  HitLaw(const DispatchWorkload& w, int domains) : experts(w.counts.experts), topk(w.topk), visible(experts) {
    if (w.domain_limit <= 0 || w.domain_limit >= domains) return;
    admitted = static_cast<double>(w.domain_limit) / domains;
    visible = std::max(topk, experts / domains * w.domain_limit);
  }
  double hit(double share) const {
    if (share <= 0.0) return 0.0;
    const double m = std::min<double>(visible, share * experts);
    return std::min(admitted * (1.0 - miss_probability(visible, m, topk)), share * topk);
  }
  double at_least_two(double share) const {
    if (share <= 0.0) return 0.0;
    const double m = std::min<double>(visible, share * experts);
    return std::min(admitted * at_least_two_probability(visible, m, topk), share * topk / 2.0);
  }
};

}  // namespace

Matrix zero_matrix(int ranks) {
  return Matrix(sz(ranks), std::vector<double>(sz(ranks), 0.0));
}

Matrix entries_at_home(const ExpertCounts& counts) {
  Matrix m = zero_matrix(counts.ranks);
  for (int r = 0; r < counts.ranks; ++r) {
    for (int e = 0; e < counts.experts; ++e) m[sz(r)][sz(counts.owner(e))] += counts.at(r, e);
  }
  return m;
}

Matrix entries_of_plan(const ExpertCounts& counts, const MoonepPlan& plan) {
  Matrix m = zero_matrix(counts.ranks);
  for (int e = 0; e < counts.experts; ++e) {
    int dest = 0;
    std::int64_t room = plan.alloc_at(0, e);
    for (int r = 0; r < counts.ranks; ++r) {
      for (std::int64_t left = counts.at(r, e); left > 0;) {
        while (room == 0) room = plan.alloc_at(++dest, e);
        const std::int64_t rows = std::min(left, room);
        m[sz(r)][sz(dest)] += static_cast<double>(rows);
        left -= rows;
        room -= rows;
      }
    }
  }
  return m;
}

std::vector<std::int64_t> tokens_per_source(const DispatchWorkload& w) {
  std::vector<std::int64_t> tokens = w.counts.per_source_rank();
  for (std::int64_t& t : tokens) t = (t + w.topk - 1) / w.topk;
  return tokens;
}

Traffic deduplicated_traffic(const DispatchWorkload& w, const Matrix& entries, Hops hops) {
  const int ranks = w.counts.ranks, per_domain = std::min(w.domain_ranks, ranks);
  CS_CHECK(per_domain > 0 && ranks % per_domain == 0, "{} ranks in NVLink domains of {}", ranks, per_domain);
  const int domains = ranks / per_domain;
  const HitLaw law(w, domains);
  const std::vector<std::int64_t> tokens = tokens_per_source(w);
  Traffic t(sz(ranks));
  for (int r = 0; r < ranks; ++r) {
    const auto n = static_cast<double>(tokens[sz(r)]);
    if (n == 0.0) continue;
    for (int domain = 0; domain < domains; ++domain) {
      const bool home = r / per_domain == domain, two_hops = hops == Hops::kTwo && !home;
      const int entry = domain * per_domain + r % per_domain;
      double domain_share = 0.0;
      for (int d = domain * per_domain; d < (domain + 1) * per_domain; ++d) {
        const double rows = entries[sz(r)][sz(d)], share = rows / (n * w.topk);
        const double distinct = n * law.hit(share), shared = n * law.at_least_two(share);
        domain_share += share;
        t[sz(d)].copied += std::max(0.0, rows - distinct) + shared;
        t[sz(d)].pre_reduced += std::max(0.0, rows - distinct) + 2.0 * shared;
        const int sender = two_hops ? entry : r;
        if (sender == d) {
          t[sz(d)].own += distinct;
        } else if (home || two_hops) {
          t[sz(sender)].nvlink_sent += distinct;
          t[sz(d)].nvlink_received += distinct;
        } else {
          t[sz(r)].rdma_sent += distinct;
          t[sz(d)].rdma_received += distinct;
        }
      }
      if (!two_hops) continue;
      const double copies = n * law.hit(domain_share);
      t[sz(r)].rdma_sent += copies;
      t[sz(entry)].rdma_received += copies;
    }
  }
  return t;
}

Traffic plain_traffic(const DispatchWorkload& w, const Matrix& entries) {
  const int ranks = w.counts.ranks, per_domain = std::min(w.domain_ranks, ranks);
  Traffic t(sz(ranks));
  for (int r = 0; r < ranks; ++r) {
    for (int d = 0; d < ranks; ++d) {
      const double rows = entries[sz(r)][sz(d)];
      if (r == d) {
        t[sz(d)].own += rows;
      } else if (r / per_domain == d / per_domain) {
        t[sz(r)].nvlink_sent += rows;
        t[sz(d)].nvlink_received += rows;
      } else {
        t[sz(r)].rdma_sent += rows;
        t[sz(d)].rdma_received += rows;
      }
    }
  }
  return t;
}

LinkBytes dispatch_link_bytes(const RankTraffic& t, double row_bytes) {
  return {Bytes::ceil(t.nvlink_sent * row_bytes), Bytes::ceil(t.nvlink_received * row_bytes),
          Bytes::ceil(t.rdma_sent * row_bytes), Bytes::ceil(t.rdma_received * row_bytes),
          Bytes::ceil(t.copied * row_bytes)};
}

LinkBytes combine_link_bytes(const RankTraffic& t, double row_bytes) {
  return {Bytes::ceil(t.nvlink_received * row_bytes), Bytes::ceil(t.nvlink_sent * row_bytes),
          Bytes::ceil(t.rdma_received * row_bytes), Bytes::ceil(t.rdma_sent * row_bytes),
          Bytes::ceil(t.pre_reduced * row_bytes)};
}

Time slowest_link(const Traffic& traffic, double row_bytes, Bandwidth nvlink, Bandwidth rdma) {
  Time slowest;
  for (const RankTraffic& t : traffic) {
    const Time local = Bytes::ceil(std::max(t.nvlink_sent, t.nvlink_received) * row_bytes) / nvlink;
    const Time remote = Bytes::ceil(std::max(t.rdma_sent, t.rdma_received) * row_bytes) / rdma;
    slowest = std::max({slowest, local, remote});
  }
  return slowest;
}

void copy_rows(const DispatchWorkload& w, const Traffic& traffic, const DispatchRates& rates, DispatchResult& out) {
  const double dispatch_row = static_cast<double>(w.width) * w.dispatch_bytes_per_value;
  const double combine_row = static_cast<double>(w.width) * w.combine_bytes_per_value;
  double copied = 0.0, pre_reduced = 0.0;
  for (std::size_t r = 0; r < traffic.size(); ++r) {
    out.ranks[r].dispatch = dispatch_link_bytes(traffic[r], dispatch_row);
    out.ranks[r].combine = combine_link_bytes(traffic[r], combine_row);
    copied = std::max(copied, traffic[r].copied);
    pre_reduced = std::max(pre_reduced, traffic[r].pre_reduced);
  }
  out.time.dispatch = rates.moonep_dispatch_fixed + slowest_link(traffic, dispatch_row, rates.nvlink, rates.rdma);
  out.time.combine = rates.moonep_combine_fixed + slowest_link(traffic, combine_row, rates.nvlink, rates.rdma);
  out.time.dispatch_local = rates.local_fixed + Bytes::ceil(copied * w.row_bytes().as_double()) / rates.hbm;
  out.time.combine_local = rates.local_fixed + Bytes::ceil(pre_reduced * w.row_bytes().as_double()) / rates.hbm;
}

void count_rows(DispatchResult& result, int pad_rows) {
  for (RankDispatch& r : result.ranks) {
    r.rows = r.padded_rows = 0;
    for (const std::int64_t rows : r.group_rows) r.rows += rows;
    for (const std::int64_t rows : grouped_rows(r.group_rows, pad_rows)) r.padded_rows += rows;
  }
}

}  // namespace k3sim
