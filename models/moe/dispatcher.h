// One interface for every way to move tokens to experts and back: what a layer's counts cost in rows, bytes, memory,
// SMs, host synchronisations and time. Link rates are parameters; nothing here knows a GPU's name.
//   single hop   token copies go straight to the destination rank (NVLink inside a domain, RDMA between domains)
//   two hops     one RDMA copy per remote domain to the rank of the same index, then NVLink fan-out
//   time         fixed + max over ranks and link classes of bytes / rate
// Source: k3-facts section 3; hardware section 3.5. Valid for one layer of one micro-batch; fitted rates see
// dispatch_rates.cpp. Distinct destinations come from row shares (exact for uniform routing, section 3.6).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/moe/dispatch_rates.h"
#include "models/moe/expert_counts.h"
#include "models/moe/volumes.h"
#include "sim/base/units.h"

namespace k3sim {

struct DispatchWorkload {
  ExpertCounts counts;
  int topk = 1;
  std::int64_t width = 0;                 // values per row on the wire
  double dispatch_bytes_per_value = 2.0;  // FP8 with scales per 128: 1 + 4 / 128
  double combine_bytes_per_value = 2.0;
  ExpertShape expert;
  int domain_ranks = 8;  // ranks per NVLink domain
  int domain_limit = 0;  // group-limited routing: domains that one token may use; 0: all
  int pad_rows = 128;

  Bytes row_bytes() const { return Bytes(width * 2); }  // BF16 in memory
};

struct DispatchPolicy {
  int sms = 0;                            // 0: the dispatcher's usual number
  double capacity_factor = 1.25;          // alltoall_drop: rows per expert relative to the mean
  double tolerance = 0.05;                // moonep_tolerance
  int redundant_per_rank = 1;             // eplb: extra expert slots of every rank
  const ExpertCounts* history = nullptr;  // eplb: counts that the placement was made from; null: this micro-batch's
  std::int64_t capacity_tokens = 0;  // S of worst-case buffers; 0: the largest number of tokens of this micro-batch
};

struct LinkBytes {
  Bytes nvlink_sent, nvlink_received;
  Bytes rdma_sent, rdma_received;
  Bytes hbm;  // local copies, reads plus writes
};

struct RankDispatch {
  std::vector<std::int64_t> group_rows;  // rows per local expert, own ones first, then replicas
  std::int64_t rows = 0;                 // real rows
  std::int64_t padded_rows = 0;          // rows that the grouped GEMM works through
  LinkBytes dispatch;
  LinkBytes combine;
  LinkBytes replication;  // weights, once
  int replicas_received = 0;
  int replicas_sent = 0;
  Bytes buffer;  // communication and token buffers of this layer's exchange
};

struct DispatchTimes {
  Time plan;            // planner or notify phase, before the dispatch
  Time dispatch;        // slowest rank
  Time dispatch_local;  // permutation or duplicate expansion
  Time combine;
  Time combine_local;    // un-permutation or pre-reduction
  Time replicate;        // weight push, largest sender
  Time gradient_return;  // off the critical path
};

struct DispatchResult {
  std::vector<RankDispatch> ranks;
  DispatchTimes time;
  Bytes pool;              // process-global, one set for all layers
  Bytes memory_per_layer;  // weights and gradients that every layer keeps in addition
  std::int64_t dropped_rows = 0;
  int sms = 0;
  int host_syncs = 0;           // per forward pass of the layer
  bool dynamic_shapes = false;  // buffer sizes follow the routing (fragmentation input of the allocator model)

  std::int64_t max_rows() const;
  Bytes max_buffer() const;
};

using DispatchFunction = DispatchResult (*)(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);

struct Dispatcher {
  std::string_view name;
  DispatchFunction run;
};

// alltoall, alltoall_drop, allgather, deepep, deepep_v2, copy_free, moonep, moonep_tolerance, moonep_hierarchical,
// eplb.
std::span<const Dispatcher> dispatchers();
// Throws ConfigError naming the known dispatchers. `key` is the scenario key that held the name.
const Dispatcher& find_dispatcher(std::string_view name, const std::string& key = "moe.dispatcher");

// Exchange of one MoE layer: dispatch and combine forward; in backward the gradient of the combine moves like a
// dispatch, that of the dispatch like a combine, and K3 dispatches once more to recompute (five exchanges in all).
struct LayerExchange {
  Time forward;
  Time backward;
};
LayerExchange layer_exchange(const DispatchResult& result, bool redispatch_in_backward);

}  // namespace k3sim
