// What is known about one GPU: datasheet limits, the coefficients of its kernel cost curves with their residuals and
// origin, copies to the host, launch costs and the slow-down of overlapped kernels. Read from
// hardware_profiles/gpu/NAME.yaml; hardware_profiles/README.md explains every field.
// A profile may borrow curves: those it lacks are taken from another profile and scaled by stated ratios.
// Source: hardware notes sections 1, 4 and 5; engine-design section 14.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/cost/cost_model.h"
#include "sim/base/units.h"

namespace k3sim {

// Datasheet limits of one GPU.
struct GpuLimits {
  std::string name;
  int sm_count = 0;
  FlopRate bf16_dense{0}, fp8_dense{0};
  Bandwidth hbm{0};
  Bandwidth host_link{0};  // per direction, pinned copies, all GPUs of the node busy both ways
  Bytes usable_memory{0};  // before context
  double price_per_gpu_hour = 0;
};

// Pinned copies between host and GPU, per direction.
struct HostLink {
  Bandwidth single{0};    // one GPU, one direction
  Bandwidth both{0};      // one GPU, both directions at once
  Bandwidth all_busy{0};  // every GPU of the node, both directions at once
  Time latency{};         // fixed cost of one copy
};

struct LaunchCost {
  Time host{};   // driver call per kernel
  Time eager{};  // eager framework operator per kernel
  Time gap{};    // GPU idle time between back-to-back kernels of one stream
};

// Ratio of overlapped to lone time, >= 1 where there is an effect.
struct OverlapSlowdown {
  double compute_beside_host_copy = 1, compute_beside_hbm_copy = 1, compute_beside_all_reduce = 1,
         compute_beside_all_to_all = 1, memory_beside_comm = 1;
};

// One fitted cost curve: named coefficients of a form that models/cost/*_curve.h evaluates.
struct CostCurve {
  std::string form;  // which formula: tiles, grouped_tiles, attention, serial_chain, prepass_chain, linear
  std::map<std::string, double> coefficients;  // units in hardware_profiles/README.md
  Provenance provenance = Provenance::datasheet;
  int rows = 0;                              // measurements behind it
  double work_min = 0, work_max = 0;         // span of kernel_work() over them; 0: unknown
  double median_error = 0, p90_error = 0;    // held-out shape families, relative
  double p95_ratio = 1.4;                    // measured over predicted, 95th percentile, held out
  bool inherited = false;                    // borrowed from another profile, not written in this one's file
  std::string note;                          // origin: file, date, conditions or the rule of transfer
  double at(const std::string& name) const;  // throws ConfigError naming the form and the coefficient
};

// Where curves that a profile lacks come from; ratios of this GPU over that one (transfer.h).
struct Borrow {
  std::string from;  // empty: nothing is borrowed
  double compute = 1, memory = 1, clock = 1;
  double throttle = 1;  // of the power-limit terms: 0 where power never limits
  std::string note;
};

struct GpuProfile {
  GpuLimits limits;
  std::string collectives;  // hardware_profiles/collectives/NAME.yaml
  std::string architecture;
  HostLink host;
  LaunchCost launch;
  OverlapSlowdown slowdown;
  std::string kda = "fla";          // which KDA forward kernel: fla or flash_kda (backward is always FLA's)
  std::string attention = "cudnn";  // which softmax attention kernel: cudnn or fa2
  Borrow borrow;
  std::string source;  // of the datasheet values
  double tdp_watt = 0;
  FlopRate fp32{0};  // of the vector units
  std::map<std::string, CostCurve> curves;
};

// What a curve's span is told in: operations of matrix kernels, bytes of streaming ones.
double kernel_work(const Kernel& kernel);

GpuLimits gpu_limits(const GpuProfile& profile);

// Reads NAME from hardware_profiles/gpu, or a file when `name` ends with .yaml. Throws ConfigError.
GpuProfile load_gpu_profile(const std::string& name);
std::vector<std::string> known_gpu_profiles();

// Fills in the curves that the profile lacks, first from profile.borrow, then from related curves of its own
// (transfer.h); they are marked as inherited.
void inherit_curves(GpuProfile& profile);

struct CostOptions {
  std::string kda = {};        // overrides GpuProfile::kda when not empty
  std::string attention = {};  // overrides GpuProfile::attention when not empty
  Time sustained_burst = {};   // power limit: kernels of a busy stream are throttled at least as one of this length
};
std::shared_ptr<const CostModel> make_cost_model(const GpuProfile& profile, const CostOptions& options = {});

}  // namespace k3sim
