// Durations on a free network; see the header.
// Several domains, all_reduce by tree (N nodes, g NICs of payload b per node, n ranks, S bytes):
//   latency + 2 log2(N) m / b + max(S-dependent part of one node, S_net / (g b)),  b times the protocol's share
//   S_net = 2 (n-1)/n S, but S for two nodes (each byte crosses once);  m = min(chunk per NIC, S / 2g): pipeline fill
// Rings: latency of the tuner + bus_factor S / min(NVLink ring rate, g b), per protocol.
// All-to-all: each GPU sends S (n-g)/n over its NIC while the node-local share moves on NVLink.
// Source: hardware notes section 3.4; the pipeline-fill term and device latency are fitted to the published
// H100 all_reduce curves from 32 to 8,192 GPUs (validation kernels.yaml, two tables, one set of three constants).
#include "models/comm/collectives.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr double kMicro = 1e-6;

std::size_t at(Collective kind) {
  return static_cast<std::size_t>(kind);
}

// Time inside one domain for any rank count: bus bandwidth interpolated linearly in log2(ranks) between tables,
// held outside them (one_domain adds the latency of further ring steps).
CurveTime domain_time(const std::vector<TimeCurve>& curves, Collective kind, int ranks, double bytes) {
  if (curves.empty()) return {};
  const auto bus_seconds = [&](const TimeCurve& c) {  // time of this curve expressed at the wanted rank count
    CurveTime t = curve_time(c, bytes);
    t.seconds *= bus_factor(kind, ranks) / bus_factor(kind, c.ranks);
    return t;
  };
  std::size_t hi = 0;
  while (hi < curves.size() && curves[hi].ranks < ranks) ++hi;
  if (hi < curves.size() && curves[hi].ranks == ranks) return curve_time(curves[hi], bytes);
  if (hi == 0 || hi == curves.size()) {
    CurveTime t = bus_seconds(hi == 0 ? curves.front() : curves.back());
    t.provenance = worst(t.provenance, Provenance::boundary);
    return t;
  }
  const CurveTime a = bus_seconds(curves[hi - 1]), b = bus_seconds(curves[hi]);
  const double f = std::log2(static_cast<double>(ranks) / curves[hi - 1].ranks) /
                   std::log2(static_cast<double>(curves[hi].ranks) / curves[hi - 1].ranks);
  return {1.0 / ((1 - f) / a.seconds + f / b.seconds), worst(worst(a.provenance, b.provenance), Provenance::fitted)};
}

double first_seconds(const std::vector<TimeCurve>& curves, Collective kind, int ranks) {
  return domain_time(curves, kind, ranks, 0).seconds;
}

// Asymptotic bus bandwidth (GB/s) of the ring inside a domain, read from the gather table, which never uses NVLS.
double ring_rate_GBps(const CommModel& m, int ranks) {
  const auto& curves = m.curves[at(Collective::all_gather)];
  if (ranks < 2 || curves.empty()) return m.p2p_rate.value() / kGB;
  const TimeCurve* best = &curves.front();
  for (const TimeCurve& c : curves) {
    if (c.ranks <= ranks) best = &c;
  }
  return marginal_rate(*best) * bus_factor(Collective::all_gather, best->ranks) / kGB;
}

double network_GBps(const CommModel& m, const CommGroup& g) {
  return m.scale_out.nic_payload.value() / kGB * g.nics_per_rank * g.ranks_per_node * g.network_share;
}

TuningInput tuning_input(const CommModel& m, Collective kind, const CommGroup& g) {
  const double extra = m.scale_out.switch_latency.microseconds() * std::max(0, g.switch_hops - 1);
  return {.kind = kind,
          .ranks = g.ranks,
          .nodes = g.nodes,
          .intra_GBps = ring_rate_GBps(m, g.ranks_per_node),
          .inter_GBps = network_GBps(m, g),
          .channels = std::max(2, m.sms_ring),
          .nvls = m.nvls && g.ranks_per_node >= m.nvls_min_ranks,
          .device_latency_us = m.scale_out.device_latency.microseconds() + extra};
}

int sms_for(const CommModel& m, Algorithm a) {
  if (a == Algorithm::nvls || a == Algorithm::nvls_tree) return m.sms_nvls;
  return a == Algorithm::direct ? m.sms_p2p : m.sms_ring;
}

struct Parts {
  double latency = 0;  // seconds
  double total = 0;    // seconds, latency included
};

Parts tree_parts(const CommModel& m, const CommGroup& g, double bytes, const TuningInput& in, TuningChoice c) {
  const double lanes = g.ranks_per_node * g.nics_per_rank;
  const double nic = in.inter_GBps * kGB / lanes;
  // The share of the full rate that this protocol reaches.
  const double rate = tuning_bandwidth_GBps(m.tuning, in, c.algorithm, c.protocol) /
                      tuning_bandwidth_GBps(m.tuning, in, c.algorithm, Protocol::simple);
  const double crossing = g.nodes == 2 ? bytes : bytes * bus_factor(Collective::all_reduce, g.ranks);
  double inside = 0;
  if (g.ranks_per_node > 1) {
    const auto& curves = m.curves[at(Collective::all_reduce)];
    inside = domain_time(curves, Collective::all_reduce, g.ranks_per_node, bytes).seconds -
             first_seconds(curves, Collective::all_reduce, g.ranks_per_node);
  }
  // LL keeps an eighth of a slot in flight; LL128 about as much as Simple.
  const double slot = m.chunk_per_nic.as_double() / (c.protocol == Protocol::ll ? 8 : 1);
  const double chunk = std::min(slot, bytes / (2 * lanes));
  const double latency = tuning_latency_us(m.tuning, in, c.algorithm, c.protocol) * kMicro;
  const double fill = 2 * std::log2(static_cast<double>(g.nodes)) * chunk / (nic * rate);
  return {latency, latency + fill + std::max(inside, crossing / (nic * lanes * rate))};
}

Parts ring_parts(const CommModel& m, double bytes, const TuningInput& in, TuningChoice c) {
  const double latency = tuning_latency_us(m.tuning, in, c.algorithm, c.protocol) * kMicro;
  return {latency, latency + bytes / (tuning_bandwidth_GBps(m.tuning, in, c.algorithm, c.protocol) * kGB)};
}

Parts spread_parts(const CommModel& m, const CommGroup& g, double bytes) {
  const double nic = m.scale_out.all_to_all_payload.value() * g.nics_per_rank * g.network_share;
  const double away = bytes * (g.ranks - g.ranks_per_node) / g.ranks;
  const double messages = g.nodes - 1.0;  // PXN: one message per destination node and rail
  const double latency = m.scale_out.send_latency.seconds() + (messages - 1) * m.scale_out.message_overhead.seconds();
  double inside = 0;
  if (g.ranks_per_node > 1) {
    const double local = bytes * g.ranks_per_node / g.ranks;
    inside = domain_time(m.curves[at(Collective::all_to_all)], Collective::all_to_all, g.ranks_per_node, local).seconds;
  }
  return {latency, std::max(latency + away / nic, inside)};
}

CollectiveTime message_time(const CommModel& m, Bytes bytes, const CommGroup& g) {
  CollectiveTime out{.sms = m.sms_p2p > 0 ? 2 : 0, .algorithm = Algorithm::direct, .protocol = Protocol::simple};
  const bool away = g.nodes > 1;
  const double rate = away ? m.scale_out.nic_payload.value() * g.network_share : m.p2p_rate.value();
  out.latency =
      away ? m.scale_out.send_latency + m.scale_out.switch_latency * std::max(0, g.switch_hops - 1) : m.p2p_latency;
  out.time = out.latency + bytes / Bandwidth(rate);
  out.provenance = Provenance::fitted;
  return out;
}

CollectiveTime one_domain(const CommModel& m, Collective kind, Bytes bytes, const CommGroup& g) {
  const auto& curves = m.curves[at(kind)];
  const TuningInput in = tuning_input(m, kind, g);
  const TuningChoice c = choose(m.tuning, in, bytes.as_double());
  CollectiveTime out{.sms = sms_for(m, c.algorithm), .algorithm = c.algorithm, .protocol = c.protocol};
  if (curves.empty()) {  // broadcast and GPUs without tables: the tuner alone
    const double latency = tuning_latency_us(m.tuning, in, c.algorithm, c.protocol);
    const double rate = tuning_bandwidth_GBps(m.tuning, in, c.algorithm, c.protocol);
    out.latency = Time::from_us(latency);
    out.time = Time::from_us(latency + bytes.as_double() / (rate * 1e3));
    out.provenance = Provenance::borrowed;
    return out;
  }
  CurveTime t = domain_time(curves, kind, g.ranks, bytes.as_double());
  if (g.ranks > curves.back().ranks && c.algorithm == Algorithm::ring) {
    TuningInput largest = in;
    largest.ranks = curves.back().ranks;
    t.seconds += (tuning_latency_us(m.tuning, in, c.algorithm, c.protocol) -
                  tuning_latency_us(m.tuning, largest, c.algorithm, c.protocol)) *
                 kMicro;
  }
  const double first = first_seconds(curves, kind, g.ranks);
  out.time = Time::from_seconds_ceil(t.seconds + (m.latency_factor - 1) * first);
  out.latency = Time::from_seconds_ceil(std::min(t.seconds, first) * m.latency_factor);
  out.provenance = t.provenance;
  return out;
}

CollectiveTime many_domains(const CommModel& m, Collective kind, Bytes bytes, const CommGroup& g,
                            std::optional<TuningChoice> forced) {
  const double size = bytes.as_double();
  const TuningInput in = tuning_input(m, kind, g);
  const TuningChoice c = forced ? *forced : choose(m.tuning, in, size);
  CS_CHECK(algorithm_exists(in, c.algorithm, c.protocol), "{} cannot run as {} {}", to_string(kind),
           to_string(c.algorithm), to_string(c.protocol));
  Parts parts;
  switch (c.algorithm) {
    case Algorithm::direct:
      parts = spread_parts(m, g, size);
      break;
    case Algorithm::tree:
    case Algorithm::nvls_tree:
      parts = tree_parts(m, g, size, in, c);
      break;
    default:
      parts = ring_parts(m, size, in, c);
  }
  return {.time = Time::from_seconds_ceil(parts.total),
          .sms = sms_for(m, c.algorithm),
          .algorithm = c.algorithm,
          .protocol = c.protocol,
          .provenance = Provenance::fitted,
          .latency = Time::from_seconds_ceil(parts.latency)};
}

}  // namespace

CommGroup comm_group(int ranks, int ranks_per_node) {
  CS_CHECK(ranks >= 1 && ranks_per_node >= 1, "group of {} ranks, {} per node", ranks, ranks_per_node);
  const int per_node = std::min(ranks, ranks_per_node);
  return {.ranks = ranks, .nodes = (ranks + per_node - 1) / per_node, .ranks_per_node = per_node};
}

double bus_factor(Collective kind, int ranks) {
  const double n = ranks;
  if (kind == Collective::all_reduce) return 2 * (n - 1) / n;
  return kind == Collective::broadcast || kind == Collective::send_recv ? 1.0 : (n - 1) / n;
}

CollectiveTime collective_time(const CommModel& model, Collective kind, Bytes buffer, const CommGroup& group,
                               std::optional<TuningChoice> forced) {
  CS_CHECK(group.ranks >= 1 && group.nodes >= 1, "group of {} ranks on {} nodes", group.ranks, group.nodes);
  if (group.ranks == 1 || buffer == Bytes(0)) return {.provenance = Provenance::measured};
  if (kind == Collective::send_recv) return message_time(model, buffer, group);
  return group.nodes == 1 ? one_domain(model, kind, buffer, group) : many_domains(model, kind, buffer, group, forced);
}

bool can_run(const CommModel& model, Collective kind, const CommGroup& group, TuningChoice choice) {
  return algorithm_exists(tuning_input(model, kind, group), choice.algorithm, choice.protocol);
}

}  // namespace k3sim
