// Scenario -> YAML with its model inside, and the choice of a cluster. Source: product-spec section 3.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "models/config/model_kinds.h"
#include "models/config/model_loader.h"
#include "tools/import/imported_scenario.h"

namespace k3sim {
namespace {

std::string indented(const std::string& text, const std::string& by) {
  std::istringstream in(text);
  std::string line, out;
  while (std::getline(in, line)) out += by + line + "\n";
  return out;
}

// One argument may hold line ends of the script.
std::string comment(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string on(bool v) {
  return v ? "true" : "false";
}

std::string parallel_text(const ParallelConfig& p) {
  std::string out = fmt::format("parallel: {{tp: {}, pp: {}, vpp: {}, cp: {}, ep: {}, etp: {}, order: {}", p.tp, p.pp,
                                p.vpp, p.cp, p.ep, p.etp, p.order);
  if (p.tp > 1) out += fmt::format(", sequence_parallel: {}", on(p.sequence_parallel));
  if (p.cp > 1) out += fmt::format(", cp_method: {}", p.cp_method);
  if (!p.stage_layers.empty()) out += fmt::format(",\n           stage_layers: [{}]", fmt::join(p.stage_layers, ", "));
  return out + "}\n";
}

std::string moe_text(const Scenario& s) {
  const MoeConfig& m = s.moe;
  std::string out = fmt::format("moe: {{dispatcher: {}", m.dispatcher);
  if (m.capacity_factor > 0) out += fmt::format(", capacity_factor: {}", m.capacity_factor);
  if (m.overlap_shared) out += ", overlap_shared: true";
  if (m.overlap_ep) out += ", overlap_ep: true";
  return out + "}\n";
}

std::string activation_text(const ActivationConfig& a) {
  std::string out = fmt::format("activation: {{policy: {}", a.policy);
  if (!a.recompute.empty()) out += fmt::format(", recompute: [{}]", fmt::join(a.recompute, ", "));
  if (a.recompute_layers > 0) out += fmt::format(", recompute_layers: {}", a.recompute_layers);
  if (a.recompute_fraction < 1) out += fmt::format(", recompute_fraction: {}", a.recompute_fraction);
  if (a.offload) out += ", offload: true";
  return out + "}\n";
}

std::string optimizer_text(const OptimizerConfig& o) {
  std::string out = fmt::format("optimizer: {{name: {}, zero: {}", o.name, o.zero);
  if (o.shard_group > 0) out += fmt::format(", shard_group: {}", o.shard_group);
  if (o.zero == 3) out += fmt::format(", reshard_after_forward: {}", on(o.reshard_after_forward));
  if (o.states != "gpu") out += fmt::format(", states: {}", o.states);
  const OptimizerConfig usual;
  if (o.gradient_bytes != usual.gradient_bytes) out += fmt::format(", gradient_bytes: {} B", o.gradient_bytes.count());
  if (o.state_bytes != usual.state_bytes) out += fmt::format(", state_bytes: {} B", o.state_bytes.count());
  return out + "}\n";
}

std::int64_t expert_block(const ParallelConfig& p) {
  return std::int64_t{p.pp} * p.ep * p.etp;
}

}  // namespace

void choose_cluster(ImportedScenario& out, const ImportOptions& options, std::optional<std::int64_t> nodes,
                    std::optional<std::int64_t> gpus_per_node) {
  ClusterConfig& c = out.scenario.cluster;
  const ParallelConfig& p = out.scenario.parallel;
  c.gpu = options.gpu;
  const bool ampere = c.gpu.rfind("a100", 0) == 0 || c.gpu.rfind("a800", 0) == 0;
  c.node = ampere ? "hgx8_gen4" : c.gpu.rfind("gb", 0) == 0 ? "nvl72" : "hgx8";
  c.fabric = ampere ? "rail_fat_tree_200g" : c.gpu.rfind("gb", 0) == 0 ? "nvl72_800g" : "rail_fat_tree_400g";
  c.gpus_per_node = static_cast<int>(gpus_per_node.value_or(8));
  if (options.nodes > 0) nodes = options.nodes;
  const std::int64_t ranks = std::int64_t{p.tp} * p.pp * p.cp;
  const std::int64_t block = std::lcm(ranks, expert_block(p));
  if (nodes) {
    c.nodes = static_cast<int>(*nodes);
  } else {
    const std::int64_t gpus = block <= c.gpus_per_node && c.gpus_per_node % block == 0
                                  ? c.gpus_per_node
                                  : std::lcm(block, std::int64_t{c.gpus_per_node});
    c.nodes = static_cast<int>(gpus / c.gpus_per_node);
    out.notes.push_back(fmt::format(
        "the launch does not say how many nodes: {} of {} GPUs, the smallest that the layout fits (--nodes)", c.nodes,
        c.gpus_per_node));
  }
  BatchConfig& b = out.scenario.batch;
  const std::int64_t unit = b.micro_batch * std::max<std::int64_t>(1, std::int64_t{c.nodes} * c.gpus_per_node / ranks);
  if (b.global_sequences > 0) return;
  b.global_sequences = unit;
  out.notes.push_back(fmt::format("no global batch size: one micro-batch per replica, {} sequences", unit));
}

std::string imported_to_yaml(const ImportedScenario& imported) {
  const Scenario& s = imported.scenario;
  std::string out = "# Written by k3sim import.\n";
  for (const std::string& n : imported.notes) out += fmt::format("# note: {}\n", comment(n));
  for (const std::string& u : imported.unknown) out += fmt::format("# unknown, without effect here: {}\n", comment(u));
  if (!imported.irrelevant.empty())
    out +=
        fmt::format("# {} arguments that change neither time nor memory are left out.\n", imported.irrelevant.size());
  const ClusterConfig& c = s.cluster;
  if (imported.zoo_model.empty())
    out += "model:\n" + indented(model_to_yaml(s.model), "  ");
  else
    out += fmt::format("model: {}\n", imported.zoo_model);
  out += fmt::format("cluster: {{gpu: {}, nodes: {}, gpus_per_node: {}, node: {}, fabric: {}}}\n", c.gpu, c.nodes,
                     c.gpus_per_node, c.node, c.fabric);
  out += parallel_text(s.parallel);
  out += fmt::format("batch: {{sequence: {}, micro_batch: {}, global_sequences: {}}}\n", s.batch.sequence,
                     s.batch.micro_batch, s.batch.global_sequences);
  out += fmt::format("schedule: {{name: {}}}\n", s.schedule.name);
  if (has_routed_experts(s.model)) out += moe_text(s);
  out += activation_text(s.activation) + optimizer_text(s.optimizer);
  out += fmt::format("overlap: {{grad_reduce: {}, param_gather: {}, tp: {}, p2p: {}}}\n", on(s.overlap.grad_reduce),
                     on(s.overlap.param_gather), on(s.overlap.tp), on(s.overlap.p2p));
  out += fmt::format("precision: {{compute: {}{}}}\n", s.precision.compute,
                     s.precision.fp8_parameters ? ", fp8_parameters: true" : "");
  out += fmt::format("software: {}\nmtp: {}\n", s.software, on(s.mtp));
  return out;
}

}  // namespace k3sim
