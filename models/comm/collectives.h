// Closed-form durations of collectives on a free network.
//   one NVLink domain:  log-log interpolation in a measured time-versus-size table of that rank count
//   several domains:    algorithm and protocol chosen by NCCL's published tuning model, latency from that model,
//                       bandwidth from min(NVLink ring rate, NICs of the group x payload per NIC)
// Sizes follow nccl-tests: the whole buffer S. all_reduce: bytes reduced per rank; all_gather: the gathered result;
// reduce_scatter: the input; all_to_all: what one rank sends, own share included; send_recv and broadcast: the message.
// A group of g ranks per node owns g NICs (rails, PXN). Shared links: run the same algorithm as flows (flow_phases.h).
// Source: hardware notes sections 3.1-3.4; NCCL src/graph/tuning.cc (constants in the profile, versioned).
// Valid from 1 KiB; checked up to 8,192 GPUs and 16 GiB (tools/validation/collective_validation).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/nccl_tuning.h"
#include "models/comm/time_curve.h"
#include "models/cost/cost_model.h"
#include "sim/base/units.h"

namespace k3sim {

// The ranks that take part. Requires: ranks <= nodes * ranks_per_node.
struct CommGroup {
  int ranks = 1;
  int nodes = 1;               // NVLink domains touched
  int ranks_per_node = 1;      // largest count in one domain
  double nics_per_rank = 1.0;  // 0.5 when two GPUs share a NIC
  double network_share = 1.0;  // fraction of the NIC rate this group can have (oversubscription, hashing, sharing)
  int switch_hops = 1;         // switches between two nodes of the group
};
// ranks ranks, filled into nodes of at most ranks_per_node.
CommGroup comm_group(int ranks, int ranks_per_node);

// Payload rates and latencies of the scale-out network; from hardware_profiles/fabric/NAME.yaml.
struct ScaleOut {
  std::string name;
  Bandwidth nic_payload;         // per NIC and direction, long messages
  Bandwidth all_to_all_payload;  // the same for dense all-to-all
  Time device_latency;           // latency that the net device reports to NCCL; paid once per hop, twice with Simple
  Time switch_latency;           // per switch beyond the first
  Time send_latency;             // one lone message, software included
  Time message_overhead;         // each further message of one NIC
};

struct CollectiveTime {
  Time time{};
  int sms = 0;  // SMs the communication kernel occupies
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  Provenance provenance = Provenance::missing;
  Time latency{};  // part that does not shrink with the size
};

// Everything measured about communication on one kind of GPU.
struct CommModel {
  std::string name;
  double nvlink_rate = 0;          // bytes/s per GPU and direction, datasheet
  Bandwidth p2p_rate;              // achieved by one NVLink send
  Time p2p_latency;                // graph-launched send/receive inside a node
  Time eager_issue;                // extra cost of a send/receive pair issued eagerly from a framework
  double slow_stack_factor = 1.0;  // latency under MPI or an eager framework over that of the tables
  double latency_factor = 1.0;     // in force: 1 (tuned, single process) ... slow_stack_factor
  bool nvls = false;
  int nvls_min_ranks = 5;
  int sms_ring = 0, sms_nvls = 0, sms_p2p = 0;
  Bytes chunk_per_nic;  // data in flight per NIC and pipeline hop (channels per NIC x slot of the buffer)
  std::vector<std::string> calibrated_on;  // ids of validation tables that the curves were read from
  NcclTuning tuning;
  ScaleOut scale_out;
  std::array<std::vector<TimeCurve>, kCollectiveKinds> curves;  // by kind, ascending rank count
};

// Throws ConfigError. The scale-out part comes from the fabric that the profile names; replace it with load_scale_out.
CommModel load_comm_model(const std::string& path);
ScaleOut load_scale_out(const std::string& path);

// Requires: group.ranks >= 1 and buffer >= 0. One rank: zero time. `forced` overrides the tuner's choice between nodes
// (as NCCL_ALGO and NCCL_PROTO do).
CollectiveTime collective_time(const CommModel& model, Collective kind, Bytes buffer, const CommGroup& group,
                               std::optional<TuningChoice> forced = {});
// Whether the algorithm and protocol exist for this group.
bool can_run(const CommModel& model, Collective kind, const CommGroup& group, TuningChoice choice);

// nccl-tests' factor between algorithm and bus bandwidth.
double bus_factor(Collective kind, int ranks);

}  // namespace k3sim
