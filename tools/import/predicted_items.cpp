// Source: see predicted_items.h.
#include "tools/import/predicted_items.h"

#include <fmt/format.h>

#include <string_view>

namespace k3sim {
namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

TraceFamily memory_family(const TimedItem& i) {
  const std::string_view name = i.name;
  if (has(name, "quantize") || has(name, "to_bf16") || has(name, "to_fp32")) return TraceFamily::fp8_cast;
  if (has(name, "rope")) return TraceFamily::rope;
  if (has(name, "permute") || has(name, "sort_rows") || has(name, "_rows")) return TraceFamily::permute;
  if (has(name, "norm")) return TraceFamily::norm;
  if (has(name, "glu") || has(name, "silu") || has(name, "gelu") || has(name, "act")) return TraceFamily::activation;
  if (has(name, "router")) return TraceFamily::router;
  return TraceFamily::elementwise;
}

TraceFamily family_of(const TimedItem& i) {
  const std::string_view name = i.name;
  if (i.is_comm) {
    // The gradient of a dispatch is a combine and the other way round.
    const bool gradient = has(name, "grad");
    if (i.module == Module::dispatch) return gradient ? TraceFamily::combine : TraceFamily::dispatch;
    if (i.module == Module::combine) return gradient ? TraceFamily::dispatch : TraceFamily::combine;
    return TraceFamily::collective;
  }
  switch (i.family) {
    case KernelFamily::gemm:
      return i.pass == Pass::weight_grad && i.module != Module::router ? TraceFamily::weight_grad : TraceFamily::gemm;
    case KernelFamily::grouped_gemm:
      return i.pass == Pass::weight_grad ? TraceFamily::weight_grad : TraceFamily::grouped_gemm;
    case KernelFamily::attention:
      return TraceFamily::attention;
    case KernelFamily::kda:
    case KernelFamily::kda_prepass:
      return TraceFamily::linear_attention;
    case KernelFamily::topk:
      return TraceFamily::router;
    case KernelFamily::newton_schulz:
    case KernelFamily::optimizer:
      return TraceFamily::optimizer;
    case KernelFamily::memory:
      return memory_family(i);
  }
  return TraceFamily::other;
}

// DeepSeek's names: the norms, the router and the residual sums run inside attn(F) and attn(B), expert products in mlp;
// the backward of a dispatch, dispatch(B), holds a combine kernel and combine(B) a dispatch kernel.
std::string action_of(const TimedItem& i, bool backward) {
  const bool weight = backward && i.pass == Pass::weight_grad;
  const char* part = "mlp";
  switch (i.module) {
    case Module::qkv_proj:
    case Module::mla_up_proj:
    case Module::core_attention:
    case Module::attn_out:
    case Module::conv:
    case Module::gate:
    case Module::norm:
    case Module::router:
    case Module::residual:
      part = "attn";
      break;
    case Module::dispatch:
      part = i.is_comm ? "dispatch" : "mlp";
      break;
    case Module::combine:
      part = i.is_comm ? "combine" : "mlp";
      break;
    case Module::embedding:
      part = "embedding";
      break;
    case Module::head:
      part = "head";
      break;
    default:
      break;
  }
  return fmt::format("{}({})", part, weight ? 'W' : backward ? 'B' : 'F');
}

int stream_of(Lane lane) {
  return lane == Lane::compute ? 0 : lane == Lane::side ? 2 : 1;
}

const char* kind_of(CommKind k) {
  switch (k) {
    case CommKind::all_reduce:
      return "all_reduce";
    case CommKind::all_gather:
    case CommKind::ring_exchange:
      return "all_gather";
    case CommKind::reduce_scatter:
      return "reduce_scatter";
    case CommKind::all_to_all:
      return "all_to_all";
    case CommKind::dispatch:
    case CommKind::combine:
      break;
  }
  return "";
}

}  // namespace

std::string collective_name(const std::string& kind, int ranks) {
  return fmt::format("{} x{}", kind, ranks);
}

PredictedWork work_of_item(const TimedItem& item, bool backward, const Placement& placement) {
  PredictedWork w;
  w.time.stream = stream_of(item.lane);
  w.time.family = family_of(item);
  w.plain = w.time.family != TraceFamily::weight_grad   ? w.time.family
            : item.family == KernelFamily::grouped_gemm ? TraceFamily::grouped_gemm
                                                        : TraceFamily::gemm;
  w.name = item.name;
  w.pass = item.pass;
  w.action = action_of(item, backward);
  if (item.is_comm) {
    const std::string kind = kind_of(item.comm);
    w.collective = kind.empty() ? to_string(w.time.family) : collective_name(kind, placement.group(item.group).ranks);
  }
  return w;
}

}  // namespace k3sim
