// Bytes that one communication puts on every link, turned into one flow whose links advance together.
// Pipelined collectives are coupled: all their links carry data at the pace of the slowest one. So the whole collective
// is one flow class: weight of a link = its bytes / bytes of the most loaded link, size = bytes of that link. On the
// bottleneck it therefore counts like any other flow. The cap makes an undisturbed flow take the calibrated time:
//   cap = size / (free time - latency)
// Source: engine-design notes section 6 (level L1: phases as flows, calibrated when links are free).
#pragma once

#include <span>
#include <utility>
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

  // Folded runs: flows keep only these links (by id), for example those of the simulated ranks. Links of equal ranks
  // that are not simulated carry equal loads, so leaving them out changes no rate. Empty: keep all.
  void keep_only(std::vector<char> keep) { keep_ = std::move(keep); }

  // The loads by ascending link, and an empty LinkLoads again.
  std::vector<std::pair<std::uint32_t, double>> drain();

  // The loads as one flow, and an empty LinkLoads again. Requires: !empty().
  FlowClass take(Time latency, Time free_time);

 private:
  std::vector<double> bytes_;  // by link
  std::vector<std::uint32_t> touched_;
  std::vector<char> keep_;
};

// Marks the links that begin or end at these GPUs, their NICs or their PCIe switches, and all links of the fabric
// between switches.
std::vector<char> links_of_gpus(const Topology& topology, std::span<const int> gpus);

}  // namespace k3sim
