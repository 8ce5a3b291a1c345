#include "tools/validation/case_target.h"

namespace k3sim {

namespace {

// GFLOP per token, forward and backward, under the rule that the source's printed value follows.
std::optional<double> gflops_per_token(const Case& c) {
  const std::string& rule = c.nearest_convention.empty() ? c.flops_convention : c.nearest_convention;
  if (rule.find("6N") != std::string::npos) return c.gflops_6n;
  if (rule.rfind("causal", 0) == 0) return c.gflops_causal;
  if (rule.rfind("full", 0) == 0 || rule.find("full attention") != std::string::npos) return c.gflops_full;
  // Not stated: papers of the Megatron line count full attention; MoE papers of 2024 and later the causal half.
  return c.model.experts > 0 ? c.gflops_causal : c.gflops_full;
}

}  // namespace

std::optional<StepTarget> step_target(const Case& c) {
  const CaseMeasured& m = c.measured;
  if (m.step_time_s) return StepTarget{*m.step_time_s, "step_time_s"};
  if (!c.gbs || c.gpus == 0) return std::nullopt;
  const double tokens = *c.gbs * static_cast<double>(c.model.sequence), gpus = c.gpus;
  if (m.tokens_per_s_per_gpu) return StepTarget{tokens / gpus / *m.tokens_per_s_per_gpu, "tokens_per_s_per_gpu"};
  if (m.tokens_per_s_total) return StepTarget{tokens / *m.tokens_per_s_total, "tokens_per_s_total"};
  if (m.samples_per_s_per_gpu) return StepTarget{*c.gbs / gpus / *m.samples_per_s_per_gpu, "samples_per_s_per_gpu"};
  if (m.samples_per_s) return StepTarget{*c.gbs / *m.samples_per_s, "samples_per_s"};
  const std::optional<double> gflops = gflops_per_token(c);
  if (!gflops) return std::nullopt;
  const double work = *gflops * 1e9 * tokens / gpus;
  if (m.model_tflops_per_gpu) return StepTarget{work / (*m.model_tflops_per_gpu * 1e12), "model_tflops_per_gpu"};
  // Hardware FLOPs count the recomputed forward: model FLOPs are three quarters of them (validation README).
  if (m.hardware_tflops_per_gpu)
    return StepTarget{work / (0.75 * *m.hardware_tflops_per_gpu * 1e12), "hardware_tflops_per_gpu"};
  if (m.mfu_pct && m.mfu_peak_tflops)
    return StepTarget{work / (*m.mfu_pct / 100.0 * *m.mfu_peak_tflops * 1e12), "mfu_pct"};
  return std::nullopt;
}

namespace {

bool says(const Case& c, const char* word) {
  return c.measured.memory_kind.find(word) != std::string::npos;
}

// "GB" without a definition. The authors' sibling repository (vocabulary parallelism) reports torch's maximum reserved
// memory divided by 2^30 under the same name; nanotron logs it in the same unit ("Mem Res (GB)").
bool reserved_by_habit(const Case& c) {
  return says(c, "GB as printed") && (c.group == "zero-bubble" || c.group == "nanotron");
}

}  // namespace

std::optional<MemoryTarget> memory_target(const Case& c) {
  const CaseMeasured& m = c.measured;
  MemoryTarget t;
  if (m.peak_memory_gib) {
    t.gib = *m.peak_memory_gib;
    t.measure = says(c, "reserved") || reserved_by_habit(c) ? MemoryMeasure::reserved
                : says(c, "device usage")                   ? MemoryMeasure::device
                                                            : MemoryMeasure::allocated;
  } else if (m.peak_reserved_gib) {
    t.gib = *m.peak_reserved_gib;
    t.measure = MemoryMeasure::reserved;
  } else {
    return std::nullopt;
  }
  t.reserved = t.measure == MemoryMeasure::reserved;
  return t;
}

}  // namespace k3sim
