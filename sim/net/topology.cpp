// Names and capacities; see the header.
// Source: naming as in product spec (topology show).
#include "sim/net/topology.h"

#include <fmt/format.h>

namespace k3sim {

const char* to_string(VertexKind kind) {
  constexpr const char* names[] = {"gpu", "nvswitch", "pcie", "nic", "host", "memory", "leaf", "spine", "core"};
  return names[static_cast<int>(kind)];
}

const char* to_string(LinkClass kind) {
  constexpr const char* names[] = {"nvlink",  "pcie",      "socket",  "dram",     "nic",
                                   "leaf_up", "leaf_down", "core_up", "core_down"};
  return names[static_cast<int>(kind)];
}

std::string Topology::vertex_name(std::uint32_t v) const {
  const Vertex& x = vertices[v];
  if (x.node < 0) return fmt::format("{}{}", to_string(x.kind), x.index);
  return fmt::format("n{}.{}{}", x.node, to_string(x.kind), x.index);
}

std::string Topology::link_name(LinkId id) const {
  const Link& link = links[id.value];
  std::uint32_t parallel = 0;
  for (std::uint32_t l = id.value; l-- > 0 && id.value - l < 2 * 4096;) {
    const bool same = links[l].from == link.from && links[l].to == link.to;
    if (same) ++parallel;
    if (!same && links[l].from != link.to) break;  // parallel links are built side by side
  }
  const std::string name = fmt::format("{}>{}", vertex_name(link.from), vertex_name(link.to));
  return parallel == 0 ? name : fmt::format("{}#{}", name, parallel);
}

std::vector<Bandwidth> Topology::capacities() const {
  std::vector<Bandwidth> out;
  out.reserve(links.size());
  for (const Link& l : links) out.push_back(l.capacity);
  return out;
}

}  // namespace k3sim
