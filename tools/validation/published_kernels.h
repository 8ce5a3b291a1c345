// Published operator tables (kernels.yaml) as measurement rows, so that one reader serves files of our own and of
// others. GEMM, grouped GEMM, attention (causal half counted, forward or backward alone) and linear-attention tables
// are translated; rates become times with the counting rules of the table. FlashAttention-3 counts as the cuDNN class.
// Source: validation/README.md (conventions); product-spec section 6.
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/measurement.h"

namespace k3sim {

struct PublishedRow {
  std::string table;  // id
  std::string gpu;    // profile name; empty when there is none
  Measurement measurement;
  std::string reason;  // why it cannot be translated
};

std::vector<PublishedRow> published_kernel_rows(const std::string& kernels_yaml);

}  // namespace k3sim
