// What each knob does to the layout that fits: bytes freed, time per sequence, nodes that then suffice.
// Source: issue "What-if" (the cheapest knob that frees the binding term).
#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/error.h"
#include "tools/planner/fit.h"
#include "tools/planner/layout_rules.h"

namespace k3sim {

namespace {

struct Measured {
  double seconds_per_sequence = 0;
  Bytes worst, binding;
};

// With about as many tokens per step as the scenario asks for, but at most 16 rounds of the pipeline: what a step pays
// once must not look like what every micro-batch pays.
std::optional<Measured> measure(Scenario s, MachineStore& machines, const std::string& binding, double tokens) {
  const double round = static_cast<double>(s.batch.global_sequences * s.batch.sequence) / 2.0;
  s.batch.global_sequences =
      s.batch.global_sequences / 2 * std::clamp<std::int64_t>(std::llround(tokens / round), 2, 16);
  StepOptions step;
  step.allow_assumed = true;  // the question is memory; times only rank the knobs
  step.reuse.moe = &machines.moe();
  Measured out;
  try {
    const StepPrediction p = predict_step(s, machines.get(s), step);
    out.seconds_per_sequence = p.summary.step.seconds() / static_cast<double>(s.batch.global_sequences);
    const RankMemory& fullest = p.memory[static_cast<std::size_t>(p.summary.worst_memory_rank)];
    out.worst = fullest.reserved + fullest.outside;
    for (const auto& [name, bytes] : memory_terms(fullest))
      if (binding == name) out.binding = bytes;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  return out;
}

// The scenario with the knob turned on `nodes` nodes; nothing when that contradicts it.
std::optional<Scenario> turned(const Scenario& base, const Knob& knob, int nodes) {
  try {
    Scenario s = SearchSpace::parse(base.text, base.file, knob.overrides).base();
    s.cluster.nodes = nodes;
    s.parallel.dp = 0;
    set_fit_batch(s);
    Layout layout;
    if (nodes % node_step(s) != 0 || LayoutRules(s.model).check(s, layout, true) != Reason::ok) return std::nullopt;
    return s;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

int fewest_nodes(const FitAnswer& answer, const Knob& knob, MachineStore& machines) {
  for (int nodes = 1; nodes < answer.nodes; ++nodes) {
    const std::optional<Scenario> s = turned(answer.scenario, knob, nodes);
    if (!s) continue;
    const FitTrial t = fit_trial(*s, machines, {}, 1);
    if (t.valid && t.short_by == Bytes(0)) return nodes;
  }
  return answer.nodes;
}

}  // namespace

const std::vector<Knob>& memory_knobs() {
  static const std::vector<Knob> knobs{
      {"store activations as the unified policy does", {"activation.policy=unified"}},
      {"recompute every layer", {"activation.policy=full"}},
      {"offload kept activations", {"activation.offload=true"}},
      {"gradient shards in host memory", {"optimizer.gradient_shards=cpu"}},
      {"optimizer states in host memory", {"optimizer.states=cpu"}},
      {"shard optimizer states (zero 1)", {"optimizer.zero=1"}},
      {"shard gradients (zero 2)", {"optimizer.zero=2"}},
      {"shard weights (zero 3)", {"optimizer.zero=3"}},
      {"gradients in BF16", {"optimizer.gradient_bytes=2 B"}},
      {"one sequence per micro-batch", {"batch.micro_batch=1"}},
      {"fewer model chunks per rank", {"parallel.vpp=1"}},
      {"twice the context parallelism", {"parallel.cp=2"}},
  };
  return knobs;
}

void try_knobs(FitAnswer& answer, MachineStore& machines) {
  const BatchConfig& asked = answer.asked;
  const double tokens =
      static_cast<double>(asked.global_tokens > 0 ? asked.global_tokens : asked.global_sequences * asked.sequence);
  const std::optional<Measured> before = measure(answer.scenario, machines, answer.binding, tokens);
  if (!before) return;
  for (const Knob& knob : memory_knobs()) {
    const std::optional<Scenario> s = turned(answer.scenario, knob, answer.nodes);
    const std::optional<Measured> after = s ? measure(*s, machines, answer.binding, tokens) : std::nullopt;
    if (!after || after->worst >= before->worst) continue;
    answer.knobs.push_back({knob.name, (before->worst - after->worst).gibibytes(),
                            (before->binding - after->binding).gibibytes(),
                            100.0 * (after->seconds_per_sequence / before->seconds_per_sequence - 1.0),
                            fewest_nodes(answer, knob, machines)});
  }
  std::stable_sort(answer.knobs.begin(), answer.knobs.end(), [](const KnobEffect& a, const KnobEffect& b) {
    const auto order = [](const KnobEffect& k) { return std::pair(k.freed_binding_gib <= 0, k.step_change_pct); };
    return order(a) < order(b);
  });
}

}  // namespace k3sim
