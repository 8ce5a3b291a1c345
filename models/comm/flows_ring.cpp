// Ring: every rank passes bus_factor x S bytes to its neighbour. Between nodes there is one ring per rail: the ring
// that leaves a node through NIC k carries 1/g of the bytes, and inside the node the g rings spread over all GPU pairs,
// so that a GPU sends its bytes over NVLink except for the 1/g that leave by its own NIC. Source: NCCL ring
// construction (one ring per NIC and direction); hardware notes section 3.4.
#include "models/comm/collective_flows.h"

namespace k3sim {

void add_ring_loads(const FlowContext& c, double bytes, Collective kind) {
  const PlacedGroup& g = c.group;
  const double wire = bytes * bus_factor(kind, g.ranks());
  const int last = kind == Collective::broadcast ? g.ranks() - 1 : g.ranks();  // a broadcast does not close the ring
  if (g.nodes() == 1) {
    for (int r = 0; r < last; ++r) {
      const int next = g.gpus[static_cast<std::size_t>((r + 1) % g.ranks())];
      c.loads.add(c.router.gpu_to_gpu(g.gpus[static_cast<std::size_t>(r)], next), wire);
    }
    return;
  }
  const double per_rail = wire / g.per_node;
  const int edges = kind == Collective::broadcast ? g.nodes() - 1 : g.nodes();
  for (int n = 0; n < g.nodes(); ++n) {
    for (int k = 0; k < g.per_node; ++k) {
      if (n < edges) c.loads.add(c.router.gpu_to_gpu(g.gpu(n, k), g.gpu((n + 1) % g.nodes(), k)), per_rail);
      if (g.per_node == 1) continue;
      const int next = g.gpu(n, (k + 1) % g.per_node);
      c.loads.add(c.router.gpu_to_gpu(g.gpu(n, k), next), wire - per_rail);
    }
  }
}

}  // namespace k3sim
