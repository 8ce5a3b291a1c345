// All-to-all of S bytes per rank, S/n to each rank.
//   one domain: every GPU sends S (n-1)/n over NVLink
//   between nodes with PXN: what the g ranks of a node have for rank k of another node leaves through NIC k, one
//   message per (rail, node); the g-1 foreign shares reach that NIC's GPU over NVLink first
// Two hops, de-duplicated: a row crosses once per destination node, to the rank of the same index, and fans out there.
// Source: hardware notes sections 3.4 (PXN) and 3.5 (two hops).
#include "models/comm/collective_flows.h"

namespace k3sim {
namespace {

const NodeLinks& links_of(const FlowContext& c, int gpu) {
  return c.topology.nodes[static_cast<std::size_t>(gpu / c.topology.spec.node.gpus)];
}

void add_nvlink(const FlowContext& c, double out, double in) {
  const int per_server = c.topology.spec.node.gpus;
  for (const int gpu : c.group.gpus) {
    const auto local = static_cast<std::size_t>(gpu % per_server);
    c.loads.add(links_of(c, gpu).nvlink_out[local], out);
    c.loads.add(links_of(c, gpu).nvlink_in[local], in);
  }
}

// `bytes` from each rank of a node to the rank of the same index on every other node.
void add_rails(const FlowContext& c, double bytes) {
  const PlacedGroup& g = c.group;
  for (int a = 0; a < g.nodes(); ++a) {
    for (int b = 0; b < g.nodes(); ++b) {
      for (int k = 0; k < g.per_node && a != b; ++k) c.loads.add(c.router.gpu_to_gpu(g.gpu(a, k), g.gpu(b, k)), bytes);
    }
  }
}

}  // namespace

void add_all_to_all_loads(const FlowContext& c, double bytes) {
  const PlacedGroup& g = c.group;
  const double part = bytes / g.ranks();
  const double local = part * (g.per_node - 1);
  const double changing_rail = part * (g.ranks() - g.per_node) * (g.per_node - 1) / g.per_node;
  if (g.per_node > 1) add_nvlink(c, local + changing_rail, local + changing_rail);
  if (g.nodes() > 1) add_rails(c, part * g.per_node);
}

void add_two_hop_loads(const FlowContext& c, const TwoHopBytes& bytes) {
  const PlacedGroup& g = c.group;
  if (g.per_node > 1) add_nvlink(c, bytes.nvlink.as_double(), bytes.nvlink.as_double());
  if (g.nodes() > 1) add_rails(c, bytes.network.as_double() / (g.nodes() - 1));
}

void add_message_loads(const FlowContext& c, double bytes) {
  c.loads.add(c.router.gpu_to_gpu(c.group.gpus[0], c.group.gpus[1]), bytes);
}

}  // namespace k3sim
