// NCCL's published cost model, used to choose algorithm and protocol and as the latency prior.
//   time = latency(algorithm, protocol, ranks, nodes) + bytes / bandwidth(algorithm, protocol, ...)
//   ring:      base + (steps - inter) h_intra + inter h_inter;  steps = 2(n-1) all_reduce, n-1 gather/scatter
//   tree:      base + 2 ((n/N - 1) h_intra + log2(N) h_inter)
//   NVLS:      h_intra (+ h_inter);   NVLS tree: h_intra + 2 log2(N) h_inter;   PAT: log2(N) h_inter/3.5 + 2.8 n us
// It is a selector: right about what runs and about latency, optimistic about bandwidth.
// Source: NCCL 2.30.7 src/graph/tuning.cc as summarised in hardware notes section 3.3; constants are data, versioned.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv };
constexpr int kCollectiveKinds = 6;
enum class Algorithm : std::uint8_t { ring, tree, nvls, nvls_tree, pat, direct };
constexpr int kAlgorithms = 6;
enum class Protocol : std::uint8_t { ll, ll128, simple };
constexpr int kProtocols = 3;
const char* to_string(Collective kind);
const char* to_string(Algorithm algorithm);
const char* to_string(Protocol protocol);

using PerProtocol = std::array<double, kProtocols>;  // LL, LL128, Simple

struct NcclTuning {
  std::string version;
  std::array<PerProtocol, kAlgorithms> base_us{};  // by algorithm
  std::array<PerProtocol, kAlgorithms> nvlink_us{};
  std::array<PerProtocol, kAlgorithms> network_us{};
  double ll_cap_one_node = 0, ll_cap_two_nodes = 0, ll_cap_multi_node = 0;  // GB/s
  double ll128_per_channel = 0;                                             // GB/s
  double tree_bandwidth = 0, tree_ll_divisor = 0, tree_ll128_one_node = 0, tree_ll128_multi_node = 0;
  std::array<std::vector<double>, kProtocols> tree_correction;  // of the bandwidth, by log2(bytes / 64)
  double ring_ll = 0, ring_ll128 = 0, ring_multi_node_latency = 0;
  double nvls_efficiency = 0, pat_bandwidth = 0;
  double pat_per_rank_us = 0, pat_network_divisor = 1;
  double network_overhead_us = 0;  // floor of h_intra in multi-node rings; threefold for Simple
};

// The group and link speeds as the tuner sees them.
struct TuningInput {
  Collective kind = Collective::all_reduce;
  int ranks = 1, nodes = 1;
  double intra_GBps = 0;  // ring bus rate inside a node (channels x per-channel speed)
  double inter_GBps = 0;  // NICs of a node x rate
  int channels = 24;
  bool nvls = false;
  double device_latency_us = 0;
};

struct TuningChoice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
};

bool algorithm_exists(const TuningInput& in, Algorithm algorithm, Protocol protocol);
// Microseconds before the first result, independent of the size.
double tuning_latency_us(const NcclTuning& t, const TuningInput& in, Algorithm algorithm, Protocol protocol);
// Algorithm bandwidth: buffer bytes per second, in GB/s.
double tuning_bandwidth_GBps(const NcclTuning& t, const TuningInput& in, Algorithm algorithm, Protocol protocol);
double tuning_time_us(const NcclTuning& t, const TuningInput& in, TuningChoice choice, double bytes);
// What the tuner multiplies a tree's bandwidth with in mid sizes; 1 for other algorithms.
double size_correction(const NcclTuning& t, const TuningInput& in, TuningChoice choice, double bytes);
// The pair with the smallest predicted time; ties go to the earlier enumerator.
TuningChoice choose(const NcclTuning& t, const TuningInput& in, double bytes);

}  // namespace k3sim
