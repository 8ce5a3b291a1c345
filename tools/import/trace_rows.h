// Kernels of a profiler trace -> rows of a measurement CSV, for `fit --from-kineto`.
//
// With recorded shapes (record_shapes=True) a kernel's host operation names its matrix sizes. Without them a scenario
// tells what ran: within one action ("attn(F)") the kernels of a family are paired with the predicted ones of that
// family, by duration, when both are equally many; an attention core may be several kernels. What cannot be paired is
// listed with the reason. A row is the median over the layers of the trace.
// These are times inside training, with the SMs that communication leaves and the traffic beside them: the curves that
// come out of them predict kernels in such a run.
// Source: product-spec section 5 (format); calibrate/fit/kernel_rows.h (what the sections mean).
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/measurement.h"
#include "models/build/machine.h"
#include "models/config/scenario.h"
#include "tools/import/kineto_reader.h"

namespace k3sim {

struct TraceRows {
  std::vector<std::string> header;  // '#' lines without the mark
  std::vector<Measurement> rows;
  std::vector<std::string> skipped;  // "mlp(W) gemm: 10 kernels, 4 predicted"
};

// `scenario` may be null. `rank`: pipeline rank of the trace.
TraceRows rows_of_trace(const KinetoTrace& trace, const std::string& file, const Scenario* scenario,
                        const Machine* machine, int rank);

}  // namespace k3sim
