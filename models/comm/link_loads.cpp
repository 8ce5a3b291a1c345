// See the header. Source: engine-design notes section 6.
#include "models/comm/link_loads.h"

#include <algorithm>
#include <limits>

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
    flow.path.push_back({LinkId(static_cast<std::size_t>(l)), bytes_[l] / most});
    bytes_[l] = 0;
  }
  touched_.clear();
  const double moving = (free_time - latency).seconds();
  flow.cap = Bandwidth(moving > 0 ? most / moving : std::numeric_limits<double>::infinity());
  return flow;
}

}  // namespace k3sim
