// Chakra execution traces run again: recorded compute, communication as recorded or as another network would take it.
//
// Streams: nodes of one rank with the same `stream` attribute run one after another; without it the host, the compute
// kernels and every process group of a rank are one stream each, as in ASTRA-sim. The order on a stream is that of the
// recorded starts, then of ids, as far as dependencies allow. A collective starts when every member has arrived;
// members without a file arrive in time. A receive ends with its send. A node with operations but without a duration
// takes num_ops over the peak of the GPU or tensor_size over its memory bandwidth, whichever is longer.
// Collectives on the network: models/comm/collectives.h; an expert exchange with network_bytes and nvlink_bytes takes
// the slower of the two (hardware notes 3.5).
// Source: astra-sim/astra-sim astra-sim/workload; engine-design section 13.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/comm/collectives.h"
#include "sim/base/units.h"
#include "tools/import/chakra_files.h"

namespace k3sim {

struct ReplayNetwork {
  CommModel comm;
  int gpus_per_node = 8;
  double network_share = 1;  // oversubscription
  double efficiency = 1;     // collectives beside compute over stand-alone
  double ep_efficiency = 1;  // expert exchanges over stand-alone
};

struct ReplayOptions {
  std::optional<ReplayNetwork> network;  // none: communication as recorded
  double compute_scale = 1;              // compute takes this many times as long
  FlopRate peak{0};                      // for nodes that only name operations
  Bandwidth hbm{0};
};

struct ReplayRank {
  int rank = 0;
  Time end, compute, communication, exposed;  // exposed: communication or waiting while no compute runs
};

struct ReplayCollective {
  std::string kind;  // ALL_REDUCE, SEND, ...
  int ranks = 0;
  std::int64_t count = 0;
  Bytes bytes;              // of one rank and call, mean
  Time recorded, replayed;  // sums over calls of one rank
};

struct ReplayResult {
  Time makespan;
  std::vector<ReplayRank> ranks;
  std::vector<ReplayCollective> collectives;
  std::vector<std::string> notes;
};

// Throws ConfigError when nodes wait for each other, or for nodes that do not exist.
ReplayResult replay_chakra(const ChakraFiles& files, const ReplayOptions& options);

}  // namespace k3sim
