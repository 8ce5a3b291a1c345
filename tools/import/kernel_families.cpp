// Source: see kernel_families.h.
#include "tools/import/kernel_families.h"

#include <algorithm>
#include <cctype>

namespace k3sim {
namespace {

struct Rule {
  const char *word, *other;  // both must occur; other may be null
  TraceFamily family;
};

// Communication first: its kernels often name the data they carry.
constexpr Rule kRules[] = {
    {"sendrecv", "nccl", TraceFamily::point_to_point},
    {"nccl", nullptr, TraceFamily::collective},
    {"nvshmem", nullptr, TraceFamily::collective},
    {"ep::", "notify", TraceFamily::notify},
    {"ep::", "get_dispatch_layout", TraceFamily::notify},
    {"ep::", "combine", TraceFamily::combine},
    {"ep::", "dispatch", TraceFamily::dispatch},
    {"memcpy", nullptr, TraceFamily::copy},
    {"memset", nullptr, TraceFamily::copy},
    {"chunk_kda", nullptr, TraceFamily::linear_attention},
    {"kda", "chunk", TraceFamily::linear_attention},
    {"gated_delta", nullptr, TraceFamily::linear_attention},
    {"chunk_gla", nullptr, TraceFamily::linear_attention},
    {"flashattn", nullptr, TraceFamily::attention},
    {"flash_fwd", nullptr, TraceFamily::attention},
    {"flash_bwd", nullptr, TraceFamily::attention},
    {"flash::", nullptr, TraceFamily::attention},
    {"flash_attn", nullptr, TraceFamily::attention},
    {"fmha", nullptr, TraceFamily::attention},
    {"sdpa", nullptr, TraceFamily::attention},
    {"attention", nullptr, TraceFamily::attention},
    {"swiglu", nullptr, TraceFamily::activation},
    {"silu", nullptr, TraceFamily::activation},
    {"gelu", nullptr, TraceFamily::activation},
    {"situ", nullptr, TraceFamily::activation},
    {"rotary", nullptr, TraceFamily::rope},
    {"rope", nullptr, TraceFamily::rope},
    {"dptp128c_acc", nullptr, TraceFamily::weight_grad},
    {"m_grouped", nullptr, TraceFamily::grouped_gemm},
    {"fill_tensormaps", nullptr, TraceFamily::grouped_gemm},
    {"grouped", "transpose", TraceFamily::fp8_cast},
    {"grouped_gemm", "groupproblemshape", TraceFamily::grouped_gemm},
    {"groupproblemshape", nullptr, TraceFamily::grouped_gemm},
    {"cast", nullptr, TraceFamily::fp8_cast},
    {"quantize", nullptr, TraceFamily::fp8_cast},
    {"batched_transpose", nullptr, TraceFamily::fp8_cast},
    {"gemm", nullptr, TraceFamily::gemm},
    {"nvjet", nullptr, TraceFamily::gemm},
    {"cublas", nullptr, TraceFamily::gemm},
    {"cutlass", "kernel", TraceFamily::gemm},
    {"splitkreduce", nullptr, TraceFamily::gemm},
    {"layer_norm", nullptr, TraceFamily::norm},
    {"layernorm", nullptr, TraceFamily::norm},
    {"rmsnorm", nullptr, TraceFamily::norm},
    {"rms_norm", nullptr, TraceFamily::norm},
    {"ln_fwd", nullptr, TraceFamily::norm},
    {"ln_bwd", nullptr, TraceFamily::norm},
    {"topk", nullptr, TraceFamily::router},
    {"count_expert", nullptr, TraceFamily::router},
    {"get_fused_mapping", nullptr, TraceFamily::router},
    {"aux_fi", nullptr, TraceFamily::router},
    {"unique_group_indices", nullptr, TraceFamily::router},
    {"router", nullptr, TraceFamily::router},
    {"expand_to_fused", nullptr, TraceFamily::permute},
    {"reduce_fused", nullptr, TraceFamily::permute},
    {"permute", nullptr, TraceFamily::permute},
    {"scatter", nullptr, TraceFamily::permute},
    {"gather", nullptr, TraceFamily::permute},
    {"indexselect", nullptr, TraceFamily::permute},
    {"index_", nullptr, TraceFamily::permute},
    {"softmax", nullptr, TraceFamily::loss},
    {"cross_entropy", nullptr, TraceFamily::loss},
    {"nll_loss", nullptr, TraceFamily::loss},
    {"multi_tensor", nullptr, TraceFamily::optimizer},
    {"adam", nullptr, TraceFamily::optimizer},
    {"newton_schulz", nullptr, TraceFamily::optimizer},
    {"elementwise", nullptr, TraceFamily::elementwise},
    {"reduce_kernel", nullptr, TraceFamily::elementwise},
    {"copy_", nullptr, TraceFamily::elementwise},
    {"catarray", nullptr, TraceFamily::elementwise},
    {"at::native", nullptr, TraceFamily::elementwise},
    {"at6native", nullptr, TraceFamily::elementwise},
    {"triton_", nullptr, TraceFamily::elementwise},
};

}  // namespace

const char* to_string(TraceFamily f) {
  constexpr const char* kNames[kTraceFamilies] = {
      "gemm",     "weight_grad", "grouped_gemm", "attention",  "linear_attention", "fp8_cast", "norm",
      "rope",     "activation",  "router",       "permute",    "elementwise",      "loss",     "optimizer",
      "dispatch", "combine",     "notify",       "collective", "point_to_point",   "copy",     "other"};
  return kNames[static_cast<std::size_t>(f)];
}

TraceFamily family_of_kernel(const std::string& name, const std::string& collective) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Rule& r : kRules)
    if (lower.find(r.word) != std::string::npos && (!r.other || lower.find(r.other) != std::string::npos))
      return r.family;
  return collective.empty() ? TraceFamily::other : TraceFamily::collective;
}

}  // namespace k3sim
