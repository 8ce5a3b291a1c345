// Bytes that one communication puts on every link, turned into one flow whose links advance together.
// Pipelined collectives are coupled: all their links carry data at the pace of the slowest one. So the whole collective
// is one flow class: weight of a link = its bytes / bytes of the most loaded link, size = bytes of that link. On the
// bottleneck it therefore counts like any other flow. The cap makes an undisturbed flow take the calibrated time:
//   cap = size / (free time - latency)
// Source: engine-design notes section 6 (level L1: phases as flows, calibrated when links are free).
#pragma once

#include <vector>

#include "sim/net/network_progress.h"
#include "sim/net/router.h"

namespace k3sim {

class LinkLoads {
 public:
  explicit LinkLoads(std::size_t links) : bytes_(links, 0.0) {}

  void add(std::uint32_t link, double bytes);
  void add(const Route& route, double bytes);
  bool empty() const { return touched_.empty(); }
  double on(std::uint32_t link) const { return bytes_[link]; }

  // The loads as one flow, and an empty LinkLoads again. Requires: !empty().
  FlowClass take(Time latency, Time free_time);

 private:
  std::vector<double> bytes_;             // by link
  std::vector<std::uint32_t> touched_;
};

}  // namespace k3sim
