// Names in published tables -> our profiles: GPUs, software stacks, network rates.
// Rates: "8x400Gb/s ... per node" is NICs x line rate; the payload is 0.94 of line rate (hardware notes 0, row 11).
// Source: validation README (hardware strings), hardware notes 2.
#include <algorithm>
#include <regex>

#include "tools/validation/case_scenario.h"

namespace k3sim {

std::string gpu_profile_name(const std::string& printed) {
  struct Alias {
    const char *text, *profile;
  };
  // Longest texts first: a plain prefix match decides.
  constexpr Alias kAliases[] = {
      {"H100-SXM5-96GB", "h100_sxm_96_hbm2e"},
      {"H100-SXM5-80GB", "h100_sxm"},
      {"H200-SXM", "h200_sxm"},
      {"H800-SXM", "h800_sxm"},
      {"A100-SXM4-40GB or", "a100_sxm_80"},
      {"A100-SXM4-80GB", "a100_sxm_80"},
      {"A100-SXM4-40GB", "a100_sxm_40"},
      {"A800-SXM-80GB", "a800_sxm_80"},
      {"A100-PCIe-80GB", "a100_pcie_80"},
      {"B200-SXM", "b200_sxm"},
      {"GB200", "gb200"},
      {"GB300", "gb300"},
      {"H20", "h20"},
  };
  for (const Alias& a : kAliases)
    if (printed.rfind(a.text, 0) == 0) return a.profile;
  return {};
}

std::string software_profile_name(const Case& c) {
  struct Alias {
    const char *text, *profile;
  };
  constexpr Alias kAliases[] = {
      {"Megatron-DeepSpeed", "megatron_deepspeed"},
      {"HAI-LLM", "hai_llm"},
      {"Composer + PyTorch FSDP", "composer_fsdp"},
      {"PyTorch FSDP + torch.compile", "fms_fsdp"},
      {"torchtitan", "torchtitan"},
      {"nanotron", "nanotron"},
      {"InternEvo", "internevo"},
      {"MaxText", "maxtext"},
      {"PaxML", "maxtext"},
      {"NeMo AutoModel", "automodel"},
      {"OLMo-core", "olmo_core"},
      {"megascale", "megascale"},
      {"Megatron-LM fork", "megatron_lm_2023"},
      {"Megatron-LM, cross-entropy fusion", "megatron_lm_2023"},
      {"Megatron-LM 2022", "megatron_lm_2022"},
      {"Megatron-LM 2021", "megatron_lm_2021"},
      {"Megatron-Core v0.9", "megatron_core_2024"},
      {"Megatron-Core r0.8", "megatron_core_2024"},
      {"Megatron-Bridge", "megatron_core_2025"},
      {"NeMo/Megatron-Core", "megatron_core_2024"},
      {"NeMo 24", "megatron_core_2024"},
      {"Megatron-Core", "megatron_core_2024"},
      {"Megatron-LM", "megatron_core_2024"},
      {"megatron", "megatron_lm_2023"},
      {"litgpt", "torchtitan"},
  };
  // Tables of one framework span years; the printed date separates the generations. torchtitan compiles the loss with
  // the model since spring 2025 (torchtitan/components/loss.py).
  if (c.framework.rfind("torchtitan", 0) == 0 && c.date >= "2025-04") return "torchtitan_2025";
  if (c.group == "zero-bubble") return "zero_bubble";
  if (c.group == "vocabulary-parallelism" || c.group == "controllable-memory-pp") return "megatron_lm_2023";
  for (const Alias& a : kAliases) {
    if (c.framework.rfind(a.text, 0) != 0) continue;
    const std::string profile = a.profile;
    return profile == "megatron_core_2024" && c.date >= "2025-06" ? "megatron_core_2025" : profile;
  }
  return "default";
}

std::optional<Bandwidth> network_per_gpu(const Case& c) {
  if (c.gpus <= c.gpus_per_node) return std::nullopt;
  static const std::regex kPerNic("([0-9]+)x([0-9]+) ?Gb/s"), kPerNode("([0-9]+) ?Gb/s");
  std::smatch m;
  double gbits = 0;
  if (std::regex_search(c.internode, m, kPerNic))
    gbits = std::stod(m[1]) * std::stod(m[2]);
  else if (std::regex_search(c.internode, m, kPerNode))
    gbits = std::stod(m[1]);
  if (gbits == 0) return std::nullopt;
  constexpr double kPayload = 0.94;
  return Bandwidth(gbits / 8.0 * 1e9 / c.gpus_per_node * kPayload);
}

}  // namespace k3sim
