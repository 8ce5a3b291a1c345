// The grouped products of the local experts as one cuBLASLt product per expert, on one stream: what frameworks do where
// the row counts are known on the host.
// Source: Transformer Engine's grouped linear layer works this way; shapes as in grouped_gemm.cuh.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/kernels/lt_matmul.h"

namespace k3sim {

class ExpertProducts {
 public:
  // w[g] is [n, k]; rows of expert g are offsets[g] .. offsets[g + 1] - 1.
  ExpertProducts(std::vector<int> offsets, int n, int k);
  void forward(const bf16* x, const bf16* w, bf16* out, cudaStream_t stream) const;
  void input_grad(const bf16* dy, const bf16* w, bf16* dx, cudaStream_t stream) const;
  void weight_grad(const bf16* dy, const bf16* x, bf16* dw, cudaStream_t stream) const;

 private:
  struct Expert {
    std::size_t index, row;
    std::unique_ptr<LtMatmul> forward, input_grad, weight_grad;
  };
  std::vector<Expert> experts_;     // with at least one row
  std::vector<std::size_t> empty_;  // whose weight gradient is zero
  std::size_t n_, k_;
};

}  // namespace k3sim
