// A layer program with durations: what the step builder instantiates for every action of the pipeline schedule.
//
// The activation policy is applied here: recomputed modules leave `saved` and their forward items are replayed at the
// start of backward. A full backward holds all items; a split one is filtered into input_grad (with the replay) and
// weight_grad. `summary` is the pass evaluated alone on its lanes (coarse detail and partitioning use it).
// Source: k3-facts 2.2 and 2.4; Megatron-LM --recompute-granularity. Overlap of tensor-parallel collectives with their
// neighbouring GEMM (ring exchange): exposed = max(c / tp, c - g (tp - 1) / tp), c collective, g GEMM (Wang et al.
// 2023).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "models/build/comm_cost.h"
#include "models/build/machine.h"
#include "models/memory/layer_events.h"
#include "models/transformer/program.h"

namespace k3sim {

struct TimedItem {
  const char* name = "";
  Lane lane = Lane::compute;
  Module module = Module::norm;
  Pass pass = Pass::forward;
  bool is_comm = false;
  bool recompute = false;
  GroupKind group = GroupKind::tp;
  CommKind comm = CommKind::all_reduce;  // valid when is_comm, as `buffer` (sizes as nccl-tests counts them)
  Bytes buffer{0};
  KernelFamily family = KernelFamily::memory;
  Time time;
  Provenance provenance = Provenance::measured;
  double p95_ratio = 1.0;
  Flops flops{0};
  std::int32_t launches = 1;
  Bytes network{0}, nvlink{0};
  Traffic traffic;                   // of communication
  Traffic push;                      // of expert weights, before `traffic`
  std::int16_t routed = -1;          // index in TimedLayer::routed: its time follows the routing
  std::vector<std::uint16_t> after;  // indices in the same pass; empty: the item before
};

struct PassSummary {
  Time elapsed;                        // alone, lanes in order
  Time compute;                        // busy time of the compute lane
  Time recompute;                      // of which replayed forward items
  std::array<Time, kLanes> exposed{};  // compute lane idle, waiting for an item of that lane
  std::int64_t launches = 0;
};

struct TimedPass {
  std::vector<TimedItem> items;
  PassSummary summary;
};

struct TimedPasses {
  TimedPass forward, backward, input_grad, weight_grad;
};

struct TimedLayer : TimedPasses {
  Bytes saved{0};      // kept on the GPU from forward to backward, per micro-batch, after the policy
  Bytes offloaded{0};  // kept in host memory instead: leaves after forward, returns before backward
  Bytes remote{0};     // the same, kept by another pipeline rank
  Bytes replayed{0};   // rebuilt during backward, alive only there
  Bytes workspace{0};
  Bytes boundary{0};
  bool moe = false;
  std::vector<Item> routed;                   // expert kernels and exchanges, to be timed again for other loads
  std::shared_ptr<const TimedPasses> least;   // with the least time that any draw of the routing gives each item
  std::shared_ptr<const LayerEvents> memory;  // allocations and frees after the policy
};

// Which parts of a layer are recomputed and where the rest is kept. full: only the layer input is kept.
// fp8: kept BF16/FP16 tensors are stored as E4M3 in 1 x 128 tiles with FP32 scales, (1 + 4/128) bytes per element, at
// the price of one quantising and one restoring kernel. offload: kept tensors wait in host memory (k3-facts 2.4).
struct RecomputePolicy {
  bool full = false;
  bool fp8 = false;
  bool offload = false;
  bool half_products = false;  // per-operator checkpoints: every second matrix product's output is kept
  std::array<bool, kModules> modules{};
  std::vector<StorageRule> rules = {};  // by tensor name, over the preset
  bool any() const {
    for (bool m : modules)
      if (m) return true;
    if (!rules.empty()) return true;
    return full || fp8 || offload || half_products;
  }
};

struct TimingOptions {
  int tp = 1;
  bool tp_overlap = false;
  bool side_stream = false;    // shared experts on their own stream
  double compute_scale = 1.0;  // compute kernels share the SMs with communication all the time (overlapped pairs)
};

TimedItem time_item(const Item& item, const TimingOptions& options, const Machine& machine, const CommCoster& comm);

TimedLayer time_layer(const LayerProgram& program, const RecomputePolicy& policy, const TimingOptions& options,
                      const Machine& machine, const CommCoster& comm);

// In-training rate of a kernel over its calibrated one.
double software_efficiency(const Kernel& kernel, const SoftwareProfile& software);

// In-order lanes, dependencies as in TimedItem; exact integer arithmetic.
PassSummary summarize(const std::vector<TimedItem>& items);

}  // namespace k3sim
