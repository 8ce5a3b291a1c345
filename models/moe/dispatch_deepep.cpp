// DeepEP normal mode: a notify phase with one host synchronisation, tokens de-duplicated per destination rank, two hops
// between NVLink domains (one RDMA copy per domain, fan-out by the rank of the same index).
//   one domain   t = fixed + rows received, own ones counted / min(nvlink_kernel, SMs * kernel_per_sm)
//   several      t = fixed + max(RDMA bytes / NIC, rows received over NVLink, own ones counted / forwarding rate)
// Source: hardware section 3.5 and k3-facts section 3.9 (figures within 15 %, golden test). Valid for SM90 and
// 1,024 or more tokens per rank. v2: more bytes per SM (4-12 SMs suffice).
#include <algorithm>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"

namespace k3sim {
namespace {

struct KernelRates {
  Bandwidth within;     // one domain
  Bandwidth forwarded;  // fan-out after RDMA
};

Bandwidth capped(Bandwidth per_sm, int sms, Bandwidth ceiling) {
  return std::min(per_sm * sms, ceiling);
}

Time kernel_time(const Traffic& traffic, double row_bytes, const KernelRates& kernel, Bandwidth rdma) {
  double rows = 0.0, remote = 0.0;
  for (const RankTraffic& t : traffic) {
    rows = std::max({rows, t.nvlink_received + t.own, t.nvlink_sent + t.own});
    remote = std::max({remote, t.rdma_sent, t.rdma_received});
  }
  if (remote == 0.0) return Bytes::ceil(rows * row_bytes) / kernel.within;
  return std::max(Bytes::ceil(rows * row_bytes) / kernel.forwarded, Bytes::ceil(remote * row_bytes) / rdma);
}

DispatchResult run(const DispatchWorkload& w, const DispatchRates& rates, int sms, Bandwidth forward_per_sm) {
  DispatchResult out = result_at_home(w);
  const Traffic traffic = deduplicated_traffic(w, entries_at_home(w.counts), Hops::kTwo);
  const KernelRates kernel{capped(rates.kernel_per_sm, sms, rates.nvlink_kernel),
                           capped(forward_per_sm, sms, rates.nvlink_kernel)};
  const double dispatch_row = static_cast<double>(w.width) * w.dispatch_bytes_per_value;
  const double combine_row = static_cast<double>(w.width) * w.combine_bytes_per_value;
  out.time.plan = rates.notify;
  out.time.dispatch = rates.deepep_dispatch_fixed + kernel_time(traffic, dispatch_row, kernel, rates.rdma);
  out.time.combine = rates.deepep_combine_fixed + kernel_time(traffic, combine_row, kernel, rates.rdma);
  double most = 0.0;
  for (std::size_t r = 0; r < traffic.size(); ++r) {
    RankDispatch& rank = out.ranks[r];
    const double received = traffic[r].nvlink_received + traffic[r].own;  // then permuted into expert order
    const double copied = received + static_cast<double>(rank.rows);
    rank.dispatch = dispatch_link_bytes(traffic[r], dispatch_row);
    rank.combine = combine_link_bytes(traffic[r], combine_row);
    rank.dispatch.hbm = rank.combine.hbm = Bytes::ceil(copied * w.row_bytes().as_double());
    rank.buffer = Bytes::ceil(received * w.row_bytes().as_double()) + w.row_bytes() * rank.padded_rows;
    most = std::max(most, copied);
  }
  out.time.dispatch_local = out.time.combine_local =
      rates.local_fixed + Bytes::ceil(most * w.row_bytes().as_double()) / rates.hbm;
  out.sms = sms;
  out.host_syncs = 1;
  out.dynamic_shapes = true;
  return out;
}

}  // namespace

DispatchResult dispatch_deepep(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  constexpr int kUsualSms = 20;  // DeepSeek-V3 training, hardware section 3.5
  return run(w, rates, policy.sms > 0 ? policy.sms : kUsualSms, rates.forward_per_sm);
}

DispatchResult dispatch_deepep_v2(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  constexpr int kUsualSms = 12;  // published for EP 8 x 2, hardware section 3.5
  return run(w, rates, policy.sms > 0 ? policy.sms : kUsualSms, rates.forward_per_sm_v2);
}

}  // namespace k3sim
