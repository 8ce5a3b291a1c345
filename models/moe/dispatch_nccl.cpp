// NCCL all-to-all of permuted tokens: every (token, k) entry is a row of its own; permute before, un-permute after.
//   allgather  every rank gets all tokens of the group and picks its own rows; the combine is a reduce-scatter
//   dropless  buffer sizes follow the counts: one host synchronisation per forward pass, dynamic shapes
//   drop      every (source rank, expert) pair has ceil(capacity_factor * s K / E) rows, padded with zeros; the excess
//             is dropped; fixed shapes, no synchronisation
//   time      nccl_fixed + max over ranks of bytes / busbw (NVLink) and bytes / NIC rate
// Source: hardware sections 3.2 and 3.4; k3-facts section 3.1 (comparison with fixed S K rows). Valid for large
// messages.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"

namespace k3sim {
namespace {

constexpr int kNcclSms = 32;  // one channel per CTA for point-to-point, hardware section 3.2
constexpr int kRingSms = 24;  // ring collectives, same section

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

void fill_times(const DispatchWorkload& w, const Traffic& traffic, const DispatchRates& rates, DispatchResult& out) {
  const double dispatch_row = static_cast<double>(w.width) * w.dispatch_bytes_per_value;
  const double combine_row = static_cast<double>(w.width) * w.combine_bytes_per_value;
  out.time.dispatch = rates.nccl_fixed + slowest_link(traffic, dispatch_row, rates.nccl_all_to_all, rates.rdma);
  out.time.combine = rates.nccl_fixed + slowest_link(traffic, combine_row, rates.nccl_all_to_all, rates.rdma);
  double local = 0.0;  // permute: read and write what is sent; then sort what arrived by expert
  for (std::size_t r = 0; r < traffic.size(); ++r) {
    const RankTraffic& t = traffic[r];
    const double rows =
        2.0 * (t.nvlink_sent + t.rdma_sent + t.own) + 2.0 * (t.nvlink_received + t.rdma_received + t.own);
    out.ranks[r].dispatch = dispatch_link_bytes(t, dispatch_row);
    out.ranks[r].combine = combine_link_bytes(t, combine_row);
    out.ranks[r].dispatch.hbm = out.ranks[r].combine.hbm = Bytes::ceil(rows * w.row_bytes().as_double());
    local = std::max(local, rows);
  }
  out.time.dispatch_local = out.time.combine_local =
      2 * rates.local_fixed + Bytes::ceil(local * w.row_bytes().as_double()) / rates.hbm;
}

}  // namespace

DispatchResult dispatch_alltoall(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  DispatchResult out = result_at_home(w);
  fill_times(w, plain_traffic(w, entries_at_home(w.counts)), rates, out);
  const std::vector<std::int64_t> sent = w.counts.per_source_rank();
  for (int r = 0; r < w.counts.ranks; ++r) {
    out.ranks[sz(r)].buffer = w.row_bytes() * (sent[sz(r)] + out.ranks[sz(r)].rows + out.ranks[sz(r)].padded_rows);
  }
  out.time.plan = rates.notify;
  out.sms = policy.sms > 0 ? policy.sms : kNcclSms;
  out.host_syncs = 1;
  out.dynamic_shapes = true;
  return out;
}

DispatchResult dispatch_alltoall_drop(const DispatchWorkload& w, const DispatchPolicy& policy,
                                      const DispatchRates& rates) {
  const int ranks = w.counts.ranks, epn = w.counts.experts_per_rank();
  DispatchResult out;
  out.ranks.resize(sz(ranks));
  const std::vector<std::int64_t> sent = w.counts.per_source_rank();
  const std::int64_t entries = *std::max_element(sent.begin(), sent.end());
  const auto slots =
      static_cast<std::int64_t>(std::ceil(policy.capacity_factor * static_cast<double>(entries) / w.counts.experts));
  for (const std::int32_t tokens : w.counts.tokens) out.dropped_rows += std::max<std::int64_t>(0, tokens - slots);
  Matrix rows = zero_matrix(ranks);
  for (auto& row : rows) row.assign(sz(ranks), static_cast<double>(slots * epn));
  for (RankDispatch& r : out.ranks) r.group_rows.assign(sz(epn), slots * ranks);
  count_rows(out, w.pad_rows);
  fill_times(w, plain_traffic(w, rows), rates, out);
  for (RankDispatch& r : out.ranks) r.buffer = w.row_bytes() * (slots * w.counts.experts + r.rows + r.padded_rows);
  out.sms = policy.sms > 0 ? policy.sms : kNcclSms;
  return out;
}

DispatchResult dispatch_allgather(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  DispatchResult out = result_at_home(w);
  const std::vector<std::int64_t> tokens = tokens_per_source(w);
  const auto all = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}));
  const int per_domain = std::min(w.domain_ranks, w.counts.ranks);
  Traffic traffic(sz(w.counts.ranks));
  for (std::size_t r = 0; r < traffic.size(); ++r) {
    RankTraffic& t = traffic[r];
    t.own = static_cast<double>(tokens[r]);
    // A ring enters and leaves every domain once per NIC: each NIC carries its share of what other domains hold.
    t.nvlink_sent = t.nvlink_received = all - t.own;
    t.rdma_sent = t.rdma_received = all * (1.0 / per_domain - 1.0 / w.counts.ranks);
  }
  fill_times(w, traffic, rates, out);
  for (RankDispatch& r : out.ranks)
    r.buffer = Bytes::ceil(all * w.row_bytes().as_double()) + w.row_bytes() * r.padded_rows;
  out.sms = policy.sms > 0 ? policy.sms : kRingSms;
  out.host_syncs = 1;
  out.dynamic_shapes = true;
  return out;
}

}  // namespace k3sim
