// Source: curve_key.h. Stated substitutes:
//   FP8 with 1x128 or microscaling blocks: per-row FP8 curve at 1 / 1.09 (1195 against 1303 TFLOP/s, hardware notes 1.3)
//   softmax and AttnRes mixes: the add curve (streaming reads and writes); depth-wise convolution: the activation curve
#include "models/cost/curve_key.h"

namespace k3sim {

namespace {

constexpr double kBlockScaledFp8 = 1.09;

CurveChoice matrix_curve(const Kernel& k, const char* bf16, const char* fp8) {
  switch (k.dtype) {
    case Dtype::bf16:
    case Dtype::fp16: return {bf16, false, 1.0};
    case Dtype::fp8: return {fp8, false, 1.0};
    case Dtype::fp8_block:
    case Dtype::mxfp8: return {fp8, true, kBlockScaledFp8};
    default: return {};
  }
}

CurveChoice memory_curve(MemoryClass c) {
  switch (c) {
    case MemoryClass::copy: return {"copy", false, 1.0};
    case MemoryClass::add: return {"add", false, 1.0};
    case MemoryClass::norm: return {"norm", false, 1.0};
    case MemoryClass::activation: return {"activation", false, 1.0};
    case MemoryClass::gather: return {"gather", false, 1.0};
    case MemoryClass::quantize: return {"quantize", false, 1.0};
    case MemoryClass::softmax:
    case MemoryClass::mix: return {"add", true, 1.0};
    case MemoryClass::conv: return {"activation", true, 1.0};
  }
  return {};
}

}  // namespace

CurveChoice choose_curve(const Kernel& k, const std::string& kda, const std::string& attention) {
  const bool forward = k.pass == Pass::forward;
  switch (k.family) {
    case KernelFamily::gemm: return matrix_curve(k, "gemm_bf16", "gemm_fp8");
    case KernelFamily::grouped_gemm: return matrix_curve(k, "grouped_bf16", "grouped_fp8");
    case KernelFamily::attention:
      return {"attention_" + attention + (forward ? "_forward" : "_backward"), false, 1.0};
    case KernelFamily::kda:
      if (forward && kda == "flash_kda") return {"kda_flash_forward", false, 1.0};
      return {forward ? "kda_fla_forward" : "kda_fla_backward", false, 1.0};
    case KernelFamily::memory: return memory_curve(k.memory_class);
    case KernelFamily::topk: return {"topk", false, 1.0};
    case KernelFamily::newton_schulz: return {"newton_schulz", false, 1.0};
    case KernelFamily::optimizer: return {"adamw", false, 1.0};
  }
  return {};
}

}  // namespace k3sim
