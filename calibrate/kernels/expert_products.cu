// Per-expert cuBLASLt products; see the header.
// Source: cuBLASLt documentation.
#include "calibrate/kernels/expert_products.h"

namespace k3sim {

ExpertProducts::ExpertProducts(std::vector<int> offsets, int n, int k) : n_(n), k_(k) {
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const int rows = offsets[g + 1] - offsets[g];
    if (rows == 0) {
      empty_.push_back(g);
      continue;
    }
    experts_.push_back({g, std::size_t(offsets[g]),
                        std::make_unique<LtMatmul>(LtShape{.m = rows, .n = n, .k = k, .b_transposed = true}),
                        std::make_unique<LtMatmul>(LtShape{.m = rows, .n = k, .k = n}),
                        std::make_unique<LtMatmul>(LtShape{.m = n, .n = k, .k = rows, .a_transposed = true})});
  }
}

void ExpertProducts::forward(const bf16* x, const bf16* w, bf16* out, cudaStream_t s) const {
  for (const auto& e : experts_) e.forward->run(x + e.row * k_, w + e.index * n_ * k_, nullptr, out + e.row * n_, s);
}

void ExpertProducts::input_grad(const bf16* dy, const bf16* w, bf16* dx, cudaStream_t s) const {
  for (const auto& e : experts_) e.input_grad->run(dy + e.row * n_, w + e.index * n_ * k_, nullptr, dx + e.row * k_, s);
}

void ExpertProducts::weight_grad(const bf16* dy, const bf16* x, bf16* dw, cudaStream_t s) const {
  for (const auto& e : experts_)
    e.weight_grad->run(dy + e.row * n_, x + e.row * k_, nullptr, dw + e.index * n_ * k_, s);
  for (const auto g : empty_) K3_CUDA(cudaMemsetAsync(dw + g * n_ * k_, 0, n_ * k_ * sizeof(bf16), s));
}

}  // namespace k3sim
