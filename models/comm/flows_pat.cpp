// PAT: parallel aggregated trees for all_gather and reduce_scatter with one rank per node. In step k every rank sends
// the 2^k parts that it holds to the rank 2^k further on (the last step only what is missing); n-1 parts in all.
// Source: Bruck et al. 1997 (index and concatenation algorithms); NCCL 2.23 release notes (PAT).
#include <algorithm>

#include "models/comm/collective_flows.h"

namespace k3sim {

void add_pat_loads(const FlowContext& c, double bytes) {
  const int n = c.group.ranks();
  const double part = bytes / n;
  for (int step = 1; step < n; step *= 2) {
    const double sent = part * std::min(step, n - step);
    for (int r = 0; r < n; ++r) {
      const int to = c.group.gpus[static_cast<std::size_t>((r + step) % n)];
      c.loads.add(c.router.gpu_to_gpu(c.group.gpus[static_cast<std::size_t>(r)], to), sent);
    }
  }
}

}  // namespace k3sim
