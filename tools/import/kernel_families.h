// Names of real kernels -> families that a prediction has too. Rules are tried in order; the first whose words all
// occur in the lower-case name wins. Source: kernel names of PyTorch, cuBLAS, CUTLASS, Transformer Engine,
// FlashAttention, fla, DeepEP, DeepGEMM, NCCL and the DeepSeek-V3 profile data.
#pragma once

#include <cstdint>
#include <string>

namespace k3sim {

enum class TraceFamily : std::uint8_t {
  gemm,
  weight_grad,  // products that accumulate into FP32 gradients, where the name tells (DeepSeek's FP8 kernels)
  grouped_gemm,
  attention,
  linear_attention,
  fp8_cast,
  norm,
  rope,
  activation,
  router,
  permute,
  elementwise,
  loss,
  optimizer,
  dispatch,
  combine,
  notify,
  collective,
  point_to_point,
  copy,
  other
};
constexpr int kTraceFamilies = 21;
const char* to_string(TraceFamily f);

// Communication kernels: what Holistic Trace Analysis counts as communication.
constexpr bool is_communication(TraceFamily f) {
  return f == TraceFamily::dispatch || f == TraceFamily::combine || f == TraceFamily::notify ||
         f == TraceFamily::collective || f == TraceFamily::point_to_point;
}

// `collective` is NCCL's own name of the operation, empty when the trace has none.
TraceFamily family_of_kernel(const std::string& name, const std::string& collective = {});

}  // namespace k3sim
