// Latency, bandwidth and choice of NCCL's tuning model; see the header for the formulas.
// Source: NCCL 2.30.7 src/graph/tuning.cc as summarised in hardware notes section 3.3.
// Left out: CollNet (needs switch offload on the scale-out fabric).
#include "models/comm/nccl_tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr std::array<const char*, kCollectiveKinds> kKindNames{"all_reduce", "all_gather", "reduce_scatter",
                                                               "all_to_all", "broadcast",  "send_recv"};
constexpr std::array<const char*, kAlgorithms> kAlgorithmNames{"ring", "tree", "nvls", "nvls_tree", "pat", "direct"};
constexpr std::array<const char*, kProtocols> kProtocolNames{"ll", "ll128", "simple"};

template <class Enum>
constexpr std::size_t at(Enum e) {
  return static_cast<std::size_t>(e);
}

bool is_reduce_all(Collective kind) {
  return kind == Collective::all_reduce;
}

double ring_steps(const TuningInput& in) {
  if (in.kind == Collective::all_reduce) return 2.0 * (in.ranks - 1);
  if (in.kind == Collective::broadcast) return in.ranks;
  return in.ranks - 1.0;
}

double ring_latency_us(const NcclTuning& t, const TuningInput& in, Protocol protocol, double hop_in, double hop_out) {
  const double steps = ring_steps(in);
  const double inter = in.nodes == 1 ? 0 : (is_reduce_all(in.kind) ? 2.0 : 1.0) * (in.nodes - 1);
  if (in.nodes > 1) {
    hop_in = std::max(hop_in, t.network_overhead_us * (protocol == Protocol::simple ? 3 : 1));
  }
  return t.base_us[at(Algorithm::ring)][at(protocol)] + (steps - inter) * hop_in + inter * hop_out;
}

double ll_cap(const NcclTuning& t, const TuningInput& in) {
  return in.nodes == 1 ? t.ll_cap_one_node : in.nodes == 2 ? t.ll_cap_two_nodes : t.ll_cap_multi_node;
}

// Per-protocol share of the tree's bus rate.
double tree_bus(const NcclTuning& t, const TuningInput& in, Protocol protocol, double bus) {
  const double simple = t.tree_bandwidth * bus;
  if (protocol == Protocol::ll) return std::min(ll_cap(t, in), simple / t.tree_ll_divisor);
  if (protocol == Protocol::ll128) return simple * (in.nodes == 1 ? t.tree_ll128_one_node : t.tree_ll128_multi_node);
  return simple;
}

double ring_bus(const NcclTuning& t, const TuningInput& in, Protocol protocol, double bus) {
  if (protocol == Protocol::ll) return std::min(ll_cap(t, in), t.ring_ll * bus);
  if (protocol == Protocol::ll128) return std::min(t.ring_ll128 * bus, in.channels * t.ll128_per_channel);
  return bus;
}

}  // namespace

const char* to_string(Collective kind) {
  return kKindNames[at(kind)];
}
const char* to_string(Algorithm algorithm) {
  return kAlgorithmNames[at(algorithm)];
}
const char* to_string(Protocol protocol) {
  return kProtocolNames[at(protocol)];
}

bool algorithm_exists(const TuningInput& in, Algorithm algorithm, Protocol protocol) {
  const bool one_rank_per_node = in.ranks == in.nodes;
  const bool gather_or_scatter = in.kind == Collective::all_gather || in.kind == Collective::reduce_scatter;
  switch (algorithm) {
    case Algorithm::ring:
      return in.kind != Collective::all_to_all && in.kind != Collective::send_recv;
    case Algorithm::tree:
      return is_reduce_all(in.kind);
    case Algorithm::nvls:
      return in.nvls && in.nodes == 1 && is_reduce_all(in.kind) && protocol == Protocol::simple;
    case Algorithm::nvls_tree:
      return in.nvls && in.nodes > 1 && is_reduce_all(in.kind) && protocol == Protocol::simple;
    case Algorithm::pat:
      return one_rank_per_node && in.nodes > 1 && gather_or_scatter && protocol == Protocol::simple;
    case Algorithm::direct:
      return protocol == Protocol::simple && (in.kind == Collective::all_to_all || in.kind == Collective::send_recv);
  }
  return false;
}

double tuning_latency_us(const NcclTuning& t, const TuningInput& in, Algorithm algorithm, Protocol protocol) {
  const double base = t.base_us[at(algorithm)][at(protocol)];
  const double hop_in = t.nvlink_us[at(algorithm)][at(protocol)];
  const double device =
      in.device_latency_us * (protocol == Protocol::simple ? 2 : 1);  // Simple flushes after receiving
  const double hop_out = t.network_us[at(algorithm)][at(protocol)] + device;
  const double levels = std::log2(static_cast<double>(in.nodes));
  switch (algorithm) {
    case Algorithm::ring:
      return ring_latency_us(t, in, protocol, hop_in, hop_out);
    case Algorithm::tree: {
      const double chain = static_cast<double>(in.ranks) / in.nodes - 1;
      return base + 2 * (chain * hop_in + levels * hop_out);
    }
    case Algorithm::nvls:
      return base + hop_in;
    case Algorithm::nvls_tree:
      return base + hop_in + 2 * levels * hop_out;
    case Algorithm::pat:
      return base + levels * hop_out / t.pat_network_divisor + t.pat_per_rank_us * in.ranks;
    case Algorithm::direct:
      return base + (in.nodes > 1 ? hop_out : hop_in);
  }
  return 0;
}

double tuning_bandwidth_GBps(const NcclTuning& t, const TuningInput& in, Algorithm algorithm, Protocol protocol) {
  const double bus = in.nodes <= 1 ? in.intra_GBps : std::min(in.intra_GBps, in.inter_GBps);
  const double n = in.ranks;
  const double per_step = n / ring_steps(in);
  switch (algorithm) {
    case Algorithm::ring:
      return ring_bus(t, in, protocol, bus) * per_step;
    case Algorithm::tree: {
      // A two-node tree sends every byte once: the NICs count double there.
      const double tree = in.nodes == 2 ? std::min(in.intra_GBps, 2 * in.inter_GBps) : bus;
      return tree_bus(t, in, protocol, tree) * 0.5;
    }
    case Algorithm::nvls:
      return in.intra_GBps * t.nvls_efficiency * (in.channels - 1) / in.channels * 2 * per_step;
    case Algorithm::nvls_tree: {
      const double inside = in.intra_GBps * t.nvls_efficiency * 2;
      return std::min(inside, in.nodes == 2 ? 2 * in.inter_GBps : in.inter_GBps) * 0.5;
    }
    case Algorithm::pat:
      return bus * t.pat_bandwidth * per_step;
    case Algorithm::direct:
      return bus;
  }
  return 0;
}

double size_correction(const NcclTuning& t, const TuningInput& in, TuningChoice choice, double bytes) {
  if (choice.algorithm != Algorithm::tree || !is_reduce_all(in.kind) || bytes < 64) return 1;
  const auto& table = t.tree_correction[at(choice.protocol)];
  const auto row = static_cast<std::size_t>(std::log2(bytes / 64));
  return row < table.size() ? table[row] : 1;
}

double tuning_time_us(const NcclTuning& t, const TuningInput& in, TuningChoice choice, double bytes) {
  const double rate =
      tuning_bandwidth_GBps(t, in, choice.algorithm, choice.protocol) * size_correction(t, in, choice, bytes);
  double latency = tuning_latency_us(t, in, choice.algorithm, choice.protocol);
  // Plateau of Simple rings between nodes, from 64 bytes per rank and channel on.
  if (choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple && in.nodes > 1 &&
      is_reduce_all(in.kind) && bytes / (static_cast<double>(in.channels) * in.ranks) >= 64) {
    latency *= t.ring_multi_node_latency;
  }
  return latency + bytes / (rate * 1e3);
}

TuningChoice choose(const NcclTuning& t, const TuningInput& in, double bytes) {
  CS_CHECK(in.ranks >= 2 && in.nodes >= 1, "tuning needs at least two ranks, got {} on {} nodes", in.ranks, in.nodes);
  TuningChoice best;
  double best_us = std::numeric_limits<double>::infinity();
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const TuningChoice c{static_cast<Algorithm>(a), static_cast<Protocol>(p)};
      if (!algorithm_exists(in, c.algorithm, c.protocol)) continue;
      const double us = tuning_time_us(t, in, c, bytes);
      if (us < best_us) best_us = us, best = c;
    }
  }
  return best;
}

}  // namespace k3sim
