// Double binary tree all_reduce between nodes: two trees, each for half of the buffer, such that an inner node of one
// is a leaf of the other; every edge carries its half up (reduce) and down (broadcast), split over the rails of the
// nodes.
//   parent of i > 0: clear the lowest set bit and set the next higher one; beyond the last node: only clear it
//   the second tree is the first one shifted by one node
// Inside a node: a chain over the GPUs (up and down), or in-switch reduction (NVLS tree), S out of and into each GPU.
// Source: Sanders, Speck, Traeff 2009 (two-tree algorithms); NCCL src/graph/trees.cc.
#include "models/comm/collective_flows.h"

namespace k3sim {
namespace {

int parent(int i, int nodes) {
  const int bit = i & -i;
  const int up = (i ^ bit) | (bit << 1);
  return up < nodes ? up : i ^ bit;
}

void add_edge(const FlowContext& c, int child, int up, double bytes) {
  const PlacedGroup& g = c.group;
  for (int k = 0; k < g.per_node; ++k) {
    c.loads.add(c.router.gpu_to_gpu(g.gpu(child, k), g.gpu(up, k)), bytes / g.per_node);
    c.loads.add(c.router.gpu_to_gpu(g.gpu(up, k), g.gpu(child, k)), bytes / g.per_node);
  }
}

}  // namespace

void add_nvls_loads(const FlowContext& c, double bytes) {
  const PlacedGroup& g = c.group;
  const int per_server = c.topology.spec.node.gpus;
  for (const int gpu : g.gpus) {
    const NodeLinks& n = c.topology.nodes[static_cast<std::size_t>(gpu / per_server)];
    c.loads.add(n.nvlink_out[static_cast<std::size_t>(gpu % per_server)], bytes);
    c.loads.add(n.nvlink_in[static_cast<std::size_t>(gpu % per_server)], bytes);
  }
}

void add_tree_loads(const FlowContext& c, double bytes, bool in_switch) {
  const PlacedGroup& g = c.group;
  const int nodes = g.nodes();
  for (int i = 1; i < nodes; ++i) {
    const int up = parent(i, nodes);
    add_edge(c, i, up, bytes / 2);
    add_edge(c, (i + 1) % nodes, (up + 1) % nodes, bytes / 2);
  }
  if (g.per_node == 1) return;
  if (in_switch) return add_nvls_loads(c, bytes);
  for (int n = 0; n < nodes; ++n) {
    for (int k = 0; k + 1 < g.per_node; ++k) {
      c.loads.add(c.router.gpu_to_gpu(g.gpu(n, k), g.gpu(n, k + 1)), bytes);
      c.loads.add(c.router.gpu_to_gpu(g.gpu(n, k + 1), g.gpu(n, k)), bytes);
    }
  }
}

}  // namespace k3sim
