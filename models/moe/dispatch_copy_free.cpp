// Copy-free DeepEP-like dispatch: rows are written straight to their final place, so the buffer must hold the worst
// case, in which every token of every rank goes to one rank: R S K rows. No host synchronisation, no staging copy, but
// the rows per rank follow the skew.
// Source: k3-facts sections 3.1 and 3.2 (R S K against S K rows). Valid within one NVLink domain; across domains each
// distinct remote rank gets its own RDMA copy.
#include <algorithm>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"

namespace k3sim {

DispatchResult dispatch_copy_free(const DispatchWorkload& w, const DispatchPolicy& policy, const DispatchRates& rates) {
  constexpr int kUsualSms = 32;
  DispatchResult out = result_at_home(w);
  const Traffic traffic = deduplicated_traffic(w, entries_at_home(w.counts), Hops::kSingle);
  const double dispatch_row = static_cast<double>(w.width) * w.dispatch_bytes_per_value;
  const double combine_row = static_cast<double>(w.width) * w.combine_bytes_per_value;
  const std::vector<std::int64_t> tokens = tokens_per_source(w);
  const std::int64_t capacity =
      policy.capacity_tokens > 0 ? policy.capacity_tokens : *std::max_element(tokens.begin(), tokens.end());
  double copied = 0.0, pre_reduced = 0.0;
  for (std::size_t r = 0; r < traffic.size(); ++r) {
    out.ranks[r].dispatch = dispatch_link_bytes(traffic[r], dispatch_row);
    out.ranks[r].combine = combine_link_bytes(traffic[r], combine_row);
    out.ranks[r].buffer = w.row_bytes() * (std::int64_t{w.counts.ranks} * capacity * w.topk);
    copied = std::max(copied, traffic[r].copied);
    pre_reduced = std::max(pre_reduced, traffic[r].pre_reduced);
  }
  out.time.dispatch = rates.moonep_dispatch_fixed + slowest_link(traffic, dispatch_row, rates.nvlink, rates.rdma);
  out.time.combine = rates.moonep_combine_fixed + slowest_link(traffic, combine_row, rates.nvlink, rates.rdma);
  out.time.dispatch_local = rates.local_fixed + Bytes::ceil(copied * w.row_bytes().as_double()) / rates.hbm;
  out.time.combine_local = rates.local_fixed + Bytes::ceil(pre_reduced * w.row_bytes().as_double()) / rates.hbm;
  out.time.plan = rates.notify;
  out.sms = policy.sms > 0 ? policy.sms : kUsualSms;
  return out;
}

}  // namespace k3sim
