// Chooses a treatment for every saved tensor of one pipeline stage so that its activations fit a memory limit at the
// least added time per micro-batch.
//
//   peak  = micro-batches in flight x sum over layers of what stays on the GPU
//           + largest of any layer (what is rebuilt or comes back in full + workspace)
//   added = sum over layers of: forward kernels of rebuilt modules + FP8 kernels
//           + copies that outlast the layer: max(0, out / rate - forward) + max(0, in / rate - backward)
// Search: from every preset and from keeping everything, greedily by bytes freed per second added until it fits, then
// by single moves (a tensor's treatment, a whole module rebuilt) while they shorten the stage. The best start is kept,
// so that the result is never worse than any preset. Source: k3-facts 2.4; hardware notes 4.2 (overlap inequality).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/memory/layer_events.h"
#include "models/transformer/program.h"
#include "sim/base/units.h"

namespace k3sim {

struct PolicyLayer {
  std::string kind;
  int count = 1;
  double in_flight = 0;                 // micro-batches of these layers alive at the peak; 0: the problem's
  std::vector<SavedTensor> tensors;     // the layer's input first
  std::array<Time, kModules> replay{};  // forward kernels of a module
  Time forward, backward;               // without any policy
  Bytes workspace{0};
};

struct PolicyProblem {
  std::vector<PolicyLayer> layers;
  double in_flight = 1;   // micro-batches (averaged over the stage's chunks) alive at the peak
  Bytes limit{0};         // for activations on the GPU
  Bytes host_limit{0};    // for one rank's share of the node; 0: unlimited
  Bytes remote_limit{0};  // what the partner has room for (with `remote`)
  Bandwidth host_rate{0}, network_rate{0};
  Bandwidth convert_rate{0};                          // FP8 kernels: bytes read plus written per second
  bool fp8 = true, offload = true, recompute = true;  // what may be used
  bool remote = false;                                // another rank keeps tensors (remote_offload allowed)
};

struct PolicyChoice {
  bool full = false;                                  // full recompute: only layer inputs are kept
  std::vector<std::vector<TensorTreatment>> tensors;  // by layer and tensor
  double added_seconds = 0;                           // per micro-batch
  Bytes peak{0}, host{0}, remote{0};
  bool fits = false, host_fits = false;
  std::string from;  // the preset where the search started
};

PolicyChoice evaluate_policy(const PolicyProblem& problem, std::vector<std::vector<TensorTreatment>> tensors);
PolicyChoice apply_preset(const PolicyProblem& problem, const StoragePolicy& preset);
bool better_choice(const PolicyChoice& a, const PolicyChoice& b);  // fits first, then time, then memory

struct NamedPreset {
  std::string name;
  StoragePolicy policy;
};
PolicyChoice search_policies(const PolicyProblem& problem, const std::vector<NamedPreset>& presets);

}  // namespace k3sim
