// One timed kernel: a row of the measurement CSV that calibrate writes and fit, kernels and validate read.
// Columns: section,kernel,pass,dtype,params,flops,bytes,median_us,p20_us,p80_us,reps; params is "k=v;k=v".
// Source: product-spec.md section 5 and the files in shared/measurements.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace k3sim {

struct KernelId {
  std::string section;  // family: gemm, grouped, moe, kda, attn, mem, copy, launch, overlap, nccl, optimizer, moonep
  std::string kernel;   // implementation and operation
  std::string pass;     // fwd, bwd, dgrad, wgrad
  std::string dtype;
  std::string params;  // "M=4096;N=7168;K=7168"; may be empty
  double flops = 0;    // useful operations, multiply-add = 2
  double bytes = 0;    // fewest bytes that must move (for nccl: the total buffer as in nccl-tests)

  // What two runs of the same measurement share; resuming skips rows whose key is present.
  std::string key() const { return section + "," + kernel + "," + pass + "," + dtype + "," + params; }
};

struct Measurement {
  KernelId id;
  double median_us = 0;
  double p20_us = 0;
  double p80_us = 0;
  int reps = 0;
};

// "M=1;N=2" from name and value pairs.
std::string join_params(const std::vector<std::pair<std::string, std::string>>& pairs);

// One line without the newline: times with three decimals, flops and bytes as whole numbers.
std::string to_csv_line(const Measurement& m);

}  // namespace k3sim
