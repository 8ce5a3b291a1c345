// From rows of a measurement CSV to kernels: which curve a row informs, the kernel as the simulator would ask for it,
// and the shape family that cross-validation leaves out as a whole. Rows of other kinds (collectives, launches,
// overlaps) and rows bound by the host get a reason instead.
//   host-bound: in kernels of many eager launches, a row that took at least as long as one with more work, and every
//   row with no more work than such a row.
//   warm: rows timed without flushing the L2; training reads its operands cold.
//   stand-ins: where a curve has rows of the library that frameworks call, rows of cuBLASLt called per expert or per
//   product, and then this project's own kernels (k3_*), are left out; without such a library they are all there is.
// Source: product-spec section 5 (format); measurements/README.md (which rows are host-bound).
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/measurement.h"
#include "models/transformer/kernel.h"

namespace k3sim {

struct KernelRow {
  Measurement measurement;
  std::string curve;         // key of GpuProfile::curves; empty when `reason` is set
  std::string family;        // for reports: gemm, grouped_gemm, attention, flash_kda, triton_kda, memory, copy, ...
  std::string shape_family;  // left out together in cross-validation
  std::string reason;        // why this row is neither fitted nor predicted
  Kernel kernel;
  bool usable() const { return reason.empty(); }
};

std::vector<KernelRow> kernel_rows(const std::vector<Measurement>& measurements);

}  // namespace k3sim
