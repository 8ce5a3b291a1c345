// Fitted dispatcher rates, one versioned table (2026-11).
//   nvlink, moonep_*_fixed   two-point fits over s = 1024 and 8192 on 8 x H200: 86 us + bytes / 330 GB/s (dispatch),
//                            22 us + bytes / 324 GB/s (combine); k3-facts section 3.8
//   planner                  91 / 85 us at 65,536 / 8,192 entries, native multicast; section 3.8
//   hbm, local_fixed         epilogue 155 / 23 us and prologue 202 / 28 us; section 3.8
//   replicate_fixed          slope and intercept of the prefetch series on GB200 (783 GB/s); section 3.8
//   nvlink_kernel, per SM    DeepEP on H100 over SMs (325 GB/s, 18.5 GB/s per SM; 26 and 48 us); hardware section 3.5
//   forward_per_sm           DeepEP v1 EP16: 190.9 MB in 1.36 ms with 20 SMs (H800), 382 MB in 2.6-2.9 ms (H200)
//   forward_per_sm_v2        at least 393 MB in 1.34 ms with 12 SMs; k3-facts section 3.9
//   nccl, notify             hardware section 3.2, all-to-all and all-gather of 8 ranks
// Source: as listed. h20 and gb200 reuse the H200 fixed costs (unmeasured there).
#include "models/moe/dispatch_rates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

Bandwidth gb(double v) {
  return Bandwidth(v * kGB);
}

DispatchRates hopper_nvlink4() {
  DispatchRates r;
  r.nvlink = gb(327);
  r.nvlink_kernel = gb(325);
  r.kernel_per_sm = gb(18.5);
  r.forward_per_sm = gb(7.0);
  r.forward_per_sm_v2 = gb(25);
  r.nccl_all_to_all = gb(324);
  r.rdma = gb(45);
  r.hbm = gb(3900);
  r.moonep_dispatch_fixed = Time::us(86);
  r.moonep_combine_fixed = Time::us(22);
  r.deepep_dispatch_fixed = Time::us(26);
  r.deepep_combine_fixed = Time::us(48);
  r.nccl_fixed = Time::ns(7'400);
  r.notify = Time::ns(10'100);
  r.planner_fixed = Time::us(84);
  r.planner_per_entry = Time::ps(105);
  r.replicate_fixed = Time::ns(6'400);
  r.local_fixed = Time::us(4);
  return r;
}

}  // namespace

DispatchRates dispatch_rates(std::string_view gpu) {
  DispatchRates r = hopper_nvlink4();
  if (gpu == "h200_sxm" || gpu == "h20") return r;
  if (gpu == "h100_sxm") {
    r.hbm = gb(2700);  // the H200 fit scaled by the bandwidth ratio 3.35 / 4.8
    return r;
  }
  if (gpu == "h800_sxm") {
    r.hbm = gb(2700);
    r.nvlink = r.nvlink_kernel = r.nccl_all_to_all = gb(160);
    return r;
  }
  if (gpu == "gb200") {
    r.nvlink = r.nvlink_kernel = gb(783);
    r.nccl_all_to_all = gb(590);
    r.hbm = gb(6500);
    return r;
  }
  const std::vector<std::string> known{"h100_sxm", "h200_sxm", "h20", "h800_sxm", "gb200"};
  Problem p;
  p.what = fmt::format("no dispatcher rates for GPU '{}'", gpu);
  p.hint = did_you_mean(gpu, known);
  throw ConfigError(std::vector<Problem>{p});
}

}  // namespace k3sim
