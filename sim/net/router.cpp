// Paths; see the header. The hash is splitmix64 over the tuple, so it is the same on every machine and in every order.
// Source: hardware notes 2.5 (five-tuple hashing), 3.4 (PXN).
#include "sim/net/router.h"

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"

namespace k3sim {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return Fingerprint::mix(Fingerprint::mix(a) ^ b);
}

}  // namespace

void Router::add(Route& r, std::uint32_t link, double weight) const {
  for (PathElement& e : r.path) {
    if (e.link.value == link) {
      e.weight += weight;
      return;
    }
  }
  r.path.push_back({LinkId(static_cast<std::size_t>(link)), weight});
}

void Router::nvlink(Route& r, int node, int from, int to) const {
  const NodeLinks& n = t_->nodes[static_cast<std::size_t>(node)];
  const std::uint32_t out = n.nvlink_out[static_cast<std::size_t>(from)],
                      in = n.nvlink_in[static_cast<std::size_t>(to)];
  add(r, out);
  add(r, in);
  r.latency += t_->links[out].latency + t_->links[in].latency;
}

int Router::live_nic(int node, int nic) const {
  const NodeLinks& n = t_->nodes[static_cast<std::size_t>(node)];
  const int nics = t_->spec.node.nics, planes = t_->spec.fabric.planes_per_nic;
  for (int i = 0; i < nics; ++i) {
    const int k = (nic + i) % nics;
    for (int p = 0; p < planes; ++p) {
      const auto at = static_cast<std::size_t>(k * planes + p);
      if (at < n.fabric_up.size() && up(n.fabric_up[at]) && up(n.fabric_down[at])) return k;
    }
  }
  throw ConfigError("node " + std::to_string(node) + " has no NIC that is up", "fabric");
}

// The hash-th live pair; dead ones are skipped, as a switch drops them from its group.
std::uint32_t Router::live(const std::vector<std::uint32_t>& candidates, const std::vector<std::uint32_t>& partners,
                           std::uint64_t hash) const {
  const auto n = static_cast<std::uint32_t>(std::min(candidates.size(), partners.size()));
  const auto start = static_cast<std::uint32_t>(hash % n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t at = (start + i) % n;
    if (up(candidates[at]) && up(partners[at])) return at;
  }
  throw ConfigError("no live path between two switches of the fabric", "fabric");
}

void Router::fabric(Route& r, std::uint32_t leaf_from, std::uint32_t leaf_to, std::uint64_t hash, double share) const {
  if (leaf_from == leaf_to) return;
  const LeafLinks& a = t_->leaves[leaf_from];
  const LeafLinks& b = t_->leaves[leaf_to];
  const std::uint32_t at = live(a.up, b.down, hash);
  add(r, a.up[at], share);
  if (a.group != b.group) {
    const GroupLinks& ga = t_->groups[static_cast<std::size_t>(a.group)];
    const GroupLinks& gb = t_->groups[static_cast<std::size_t>(b.group)];
    CS_CHECK(ga.core_group == gb.core_group && !ga.up.empty(), "leaves {} and {} share no switch", leaf_from, leaf_to);
    const std::uint64_t per_spine = std::max<std::uint64_t>(1, ga.up.size() / a.up.size());
    const std::uint32_t core = live(ga.up, gb.down, at * per_spine + mix(hash, 1) % per_spine);
    add(r, ga.up[core], share);
    add(r, gb.down[core], share);
  }
  add(r, b.down[at], share);
}

void Router::one_flow(Route& r, std::size_t from, std::size_t to, int node_from, int node_to, std::uint64_t hash,
                      double share) const {
  const NodeLinks& a = t_->nodes[static_cast<std::size_t>(node_from)];
  const NodeLinks& b = t_->nodes[static_cast<std::size_t>(node_to)];
  add(r, a.fabric_up[from], share);
  fabric(r, a.leaf[from], b.leaf[to], hash, share);
  add(r, b.fabric_down[to], share);
}

Route Router::nic_to_nic(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t key) const {
  Route r;
  const FabricSpec& f = t_->spec.fabric;
  const int planes = f.planes_per_nic;
  const int flows = f.routing == Routing::ecmp ? f.flows_per_pair : 1;
  const auto pair = mix(mix(static_cast<std::uint64_t>(from_node * t_->spec.node.nics + from_nic),
                            static_cast<std::uint64_t>(to_node * t_->spec.node.nics + to_nic)),
                        key);
  const NodeLinks& a = t_->nodes[static_cast<std::size_t>(from_node)];
  const NodeLinks& b = t_->nodes[static_cast<std::size_t>(to_node)];
  std::vector<int> usable;
  for (int p = 0; p < planes; ++p) {
    const auto from = static_cast<std::size_t>(from_nic * planes + p),
               to = static_cast<std::size_t>(to_nic * planes + p);
    if (up(a.fabric_up[from]) && up(b.fabric_down[to])) usable.push_back(p);
  }
  if (usable.empty()) throw ConfigError("two NICs share no plane that is up", "fabric");
  const double share = 1.0 / (flows * static_cast<double>(usable.size()));
  for (const int p : usable) {
    for (int i = 0; i < flows; ++i) {
      one_flow(r, static_cast<std::size_t>(from_nic * planes + p), static_cast<std::size_t>(to_nic * planes + p),
               from_node, to_node, mix(pair, static_cast<std::uint64_t>(p * flows + i)), share);
    }
  }
  const bool same_leaf = a.leaf[static_cast<std::size_t>(from_nic * planes + usable[0])] ==
                         b.leaf[static_cast<std::size_t>(to_nic * planes + usable[0])];
  r.switches = 1;
  if (!same_leaf) {
    const auto group = [&](const NodeLinks& n, int nic) {
      return t_->leaves[n.leaf[static_cast<std::size_t>(nic * planes + usable[0])]].group;
    };
    r.switches = group(a, from_nic) == group(b, to_nic) ? 3 : 5;
  }
  r.latency = f.device_latency + f.switch_latency * r.switches;
  return r;
}

Route Router::gpu_to_gpu(int from, int to, std::uint64_t key) const {
  const NodeSpec& node = t_->spec.node;
  const int a = from / node.gpus, b = to / node.gpus;
  const int ga = from % node.gpus, gb = to % node.gpus;
  Route r;
  if (from == to) return r;
  if (a == b) {
    nvlink(r, a, ga, gb);
    return r;
  }
  int exit_gpu = ga;
  const bool rails = t_->spec.fabric.kind != FabricKind::leaf_spine;
  // Planes that never meet leave no choice but to change rail inside the server.
  if (rails && (t_->spec.fabric.pxn || t_->spec.fabric.kind == FabricKind::multi_plane)) exit_gpu = gb;
  int out = live_nic(a, t_->nic_of(exit_gpu)), in = live_nic(b, t_->nic_of(gb));
  if (t_->spec.fabric.kind == FabricKind::multi_plane && out != in) out = in = live_nic(a, in);
  exit_gpu = out == t_->nic_of(exit_gpu) ? exit_gpu : out * node.gpus / node.nics;
  const int entry_gpu = in == t_->nic_of(gb) ? gb : in * node.gpus / node.nics;
  if (exit_gpu != ga) nvlink(r, a, ga, exit_gpu);
  const NodeLinks& na = t_->nodes[static_cast<std::size_t>(a)];
  const NodeLinks& nb = t_->nodes[static_cast<std::size_t>(b)];
  add(r, na.pcie_up[static_cast<std::size_t>(exit_gpu)]);
  add(r, na.nic_in[static_cast<std::size_t>(out)]);
  const Route net = nic_to_nic(a, out, b, in, key);
  for (const PathElement& e : net.path) add(r, e.link.value, e.weight);
  add(r, nb.nic_out[static_cast<std::size_t>(in)]);
  add(r, nb.pcie_down[static_cast<std::size_t>(entry_gpu)]);
  if (entry_gpu != gb) nvlink(r, b, entry_gpu, gb);
  r.latency += net.latency + node.pcie_latency * 4;
  r.switches = net.switches;
  return r;
}

Route Router::host_to_gpu(int gpu) const {
  Route r;
  const int node = gpu / t_->spec.node.gpus, g = gpu % t_->spec.node.gpus;
  const NodeLinks& n = t_->nodes[static_cast<std::size_t>(node)];
  add(r, n.dram[static_cast<std::size_t>(t_->socket_of(g))]);
  add(r, n.host_down[static_cast<std::size_t>(t_->pcie_switch_of(g))]);
  add(r, n.pcie_down[static_cast<std::size_t>(g)]);
  r.latency = t_->spec.node.pcie_latency * 2;
  return r;
}

Route Router::gpu_to_host(int gpu) const {
  Route r;
  const int node = gpu / t_->spec.node.gpus, g = gpu % t_->spec.node.gpus;
  const NodeLinks& n = t_->nodes[static_cast<std::size_t>(node)];
  add(r, n.pcie_up[static_cast<std::size_t>(g)]);
  add(r, n.host_up[static_cast<std::size_t>(t_->pcie_switch_of(g))]);
  add(r, n.dram[static_cast<std::size_t>(t_->socket_of(g))]);
  r.latency = t_->spec.node.pcie_latency * 2;
  return r;
}

}  // namespace k3sim
