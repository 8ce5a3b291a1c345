// See the header. Source: engine-design notes section 6.
#include "models/comm/link_loads.h"

#include <algorithm>
#include <limits>
#include <span>

#include "sim/base/check.h"

namespace k3sim {

void LinkLoads::add(std::uint32_t link, double bytes) {
  if (bytes <= 0) return;
  if (bytes_[link] == 0) touched_.push_back(link);
  bytes_[link] += bytes;
}

void LinkLoads::add(const Route& route, double bytes) {
  for (const PathElement& e : route.path) add(e.link.value, e.weight * bytes);
}

std::vector<std::pair<std::uint32_t, double>> LinkLoads::drain() {
  std::sort(touched_.begin(), touched_.end());
  std::vector<std::pair<std::uint32_t, double>> out;
  out.reserve(touched_.size());
  for (const std::uint32_t l : touched_) {
    out.emplace_back(l, bytes_[l]);
    bytes_[l] = 0;
  }
  touched_.clear();
  return out;
}

FlowClass LinkLoads::take(Time latency, Time free_time) {
  CS_CHECK(!touched_.empty(), "a communication without any byte on a link");
  std::sort(touched_.begin(), touched_.end());
  double most = 0;
  for (const std::uint32_t l : touched_) most = std::max(most, bytes_[l]);
  FlowClass flow;
  flow.bytes = Bytes::ceil(most);
  flow.latency = latency;
  flow.path.reserve(touched_.size());
  for (const std::uint32_t l : touched_) {
    if (keep_.empty() || keep_[l]) flow.path.push_back({LinkId(static_cast<std::size_t>(l)), bytes_[l] / most});
    bytes_[l] = 0;
  }
  touched_.clear();
  const double moving = (free_time - latency).seconds();
  CS_CHECK(moving > 0 || !flow.path.empty(), "a flow without links needs a time");
  flow.cap = Bandwidth(moving > 0 ? most / moving : std::numeric_limits<double>::infinity());
  return flow;
}

std::vector<char> links_of_gpus(const Topology& t, std::span<const int> gpus) {
  std::vector<char> vertex(t.vertices.size(), 0);
  std::vector<char> wanted(static_cast<std::size_t>(t.spec.gpus()), 0);
  for (const int g : gpus) wanted[static_cast<std::size_t>(g)] = 1;
  const auto any = [&](int node, auto belongs) {
    for (int g = 0; g < t.spec.node.gpus; ++g) {
      if (wanted[static_cast<std::size_t>(node * t.spec.node.gpus + g)] && belongs(g)) return true;
    }
    return false;
  };
  for (std::size_t v = 0; v < t.vertices.size(); ++v) {
    const Vertex& x = t.vertices[v];
    if (x.kind == VertexKind::gpu) vertex[v] = any(x.node, [&](int g) { return g == x.index; });
    if (x.kind == VertexKind::nic) vertex[v] = any(x.node, [&](int g) { return t.nic_of(g) == x.index; });
    if (x.kind == VertexKind::pcie_switch)
      vertex[v] = any(x.node, [&](int g) { return t.pcie_switch_of(g) == x.index; });
  }
  std::vector<char> keep(t.links.size(), 0);
  for (std::size_t l = 0; l < t.links.size(); ++l) {
    const Link& link = t.links[l];
    const bool switches = t.vertices[link.from].node < 0 && t.vertices[link.to].node < 0;
    keep[l] = switches || vertex[link.from] || vertex[link.to];
  }
  return keep;
}

}  // namespace k3sim
