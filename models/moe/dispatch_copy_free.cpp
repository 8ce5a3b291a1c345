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
  const std::vector<std::int64_t> tokens = tokens_per_source(w);
  const std::int64_t capacity =
      policy.capacity_tokens > 0 ? policy.capacity_tokens : *std::max_element(tokens.begin(), tokens.end());
  for (RankDispatch& r : out.ranks) r.buffer = w.row_bytes() * (std::int64_t{w.counts.ranks} * capacity * w.topk);
  copy_rows(w, deduplicated_traffic(w, entries_at_home(w.counts), Hops::kSingle), rates, out);
  out.time.plan = rates.notify;
  out.sms = policy.sms > 0 ? policy.sms : kUsualSms;
  return out;
}

}  // namespace k3sim
