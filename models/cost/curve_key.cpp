// Source: curve_key.h. Substitutes: softmax and AttnRes mixes use the add curve (streaming reads and writes),
// depth-wise convolution the activation curve. Curves of FP8 blocks and FP32 may themselves be derived (transfer.h).
#include "models/cost/curve_key.h"

namespace k3sim {

namespace {

CurveChoice matrix_curve(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
    case Dtype::fp16:
      return {"gemm_bf16", false};
    case Dtype::fp32:
      return {"gemm_fp32", false};
    case Dtype::fp8:
      return {"gemm_fp8", false};
    case Dtype::fp8_block:
    case Dtype::mxfp8:
      return {"gemm_fp8_block", false};
    case Dtype::nvfp4:
      break;
  }
  return {};
}

CurveChoice grouped_curve(Dtype dtype) {
  if (dtype == Dtype::bf16 || dtype == Dtype::fp16) return {"grouped_bf16", false};
  return is_fp8(dtype) ? CurveChoice{"grouped_fp8", false} : CurveChoice{};
}

CurveChoice memory_curve(MemoryClass c) {
  switch (c) {
    case MemoryClass::copy:
      return {"copy", false};
    case MemoryClass::add:
      return {"add", false};
    case MemoryClass::norm:
      return {"norm", false};
    case MemoryClass::activation:
      return {"activation", false};
    case MemoryClass::gather:
      return {"gather", false};
    case MemoryClass::quantize:
      return {"quantize", false};
    case MemoryClass::softmax:
    case MemoryClass::mix:
      return {"add", true};
    case MemoryClass::conv:
      return {"activation", true};
  }
  return {};
}

}  // namespace

CurveChoice choose_curve(const Kernel& k, const std::string& kda, const std::string& attention) {
  const bool forward = k.pass == Pass::forward;
  switch (k.family) {
    case KernelFamily::gemm:
      return matrix_curve(k.dtype);
    case KernelFamily::grouped_gemm:
      return grouped_curve(k.dtype);
    case KernelFamily::attention:
      return {"attention_" + attention + (forward ? "_forward" : "_backward"), false};
    case KernelFamily::kda:
      if (forward && kda == "flash_kda") return {"kda_flash_forward", false};
      return {forward ? "kda_fla_forward" : "kda_fla_backward", false};
    case KernelFamily::kda_prepass:
      return {forward ? "kda_prepass_forward" : "kda_prepass_backward", false};
    case KernelFamily::memory:
      return memory_curve(k.memory_class);
    case KernelFamily::topk:
      return {"topk", false};
    case KernelFamily::newton_schulz:
      return {"newton_schulz", false};
    case KernelFamily::optimizer:
      return {"adamw", false};
  }
  return {};
}

}  // namespace k3sim
