// Keeps the links that can decide: of links of one class, one whose load relative to its capacity is nowhere above that
// of another link, whatever runs, can never be the tighter of the two and is left out. Exact for max-min sharing; equal
// links are kept once. On symmetric clusters some dozen links remain of tens of thousands, and nothing is assumed about
// symmetry: hashed, degraded and partly filled fabrics just keep more.
// Source: engine-design section 7 (folding must be checked); Bertsekas and Gallager, section 6.5.2 (bottleneck links).
#pragma once

#include <vector>

#include "models/build/traffic_patterns.h"

namespace k3sim {

struct KeptLink {
  std::uint32_t link = 0;  // of the topology
  std::size_t alike = 1;   // links with the same relative load in every pattern, itself included
};

struct LinkReduction {
  std::vector<KeptLink> kept;     // ascending by link
  std::vector<Pattern> patterns;  // as given, over indices into `kept`
};

// Throws ConfigError when a link that is down would carry something.
LinkReduction reduce_links(const Topology& topology, const std::vector<Pattern>& patterns);

}  // namespace k3sim
