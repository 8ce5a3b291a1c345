#include "tools/planner/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/config/expert_width.h"
#include "models/config/scenario_loader.h"
#include "models/config/yaml_reader.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

bool full_attention(Scenario& s) {
  const auto is = [](AttentionKind kind) { return [kind](const LayerSpec& l) { return l.attention.kind == kind; }; };
  std::vector<LayerSpec>& layers = s.model.layers;
  const auto mla = std::find_if(layers.begin(), layers.end(), is(AttentionKind::mla));
  if (mla == layers.end() || std::none_of(layers.begin(), layers.end(), is(AttentionKind::kda))) return false;
  const AttentionSpec full = mla->attention;
  for (LayerSpec& l : layers)
    if (l.attention.kind == AttentionKind::kda) l.attention = full;
  return true;
}

// The switch moe.expert_width.
bool full_width(Scenario& s) {
  s.moe.expert_width = "full";
  return !set_expert_width(s.model, true).has_value();
}

}  // namespace

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> table{
      {"KDA -> full MLA", {}, {}, full_attention},
      {"LatentMoE -> full width", {}, {}, full_width},
      {"MoonEP -> plain all-to-all", {"moe.dispatcher=moonep"}, {"moe.dispatcher=alltoall"}},
      {"KCP -> head all-to-all", {"parallel.kcp=true"}, {"parallel.kda_exchange=all_to_all"}},
      {"AttnRes boundaries cached -> naive",
       {"attnres.pipeline=cached", "model.attnres=true"},
       {"attnres.pipeline=naive"}},
      {"activation manager -> full recompute", {"activation.policy=unified"}, {"activation.policy=full"}},
      {"activation manager -> full recompute", {"activation.policy=auto"}, {"activation.policy=full"}},
      {"offload off", {"activation.policy=auto"}, {"activation.forbid=[offload, remote_offload]"}},
      {"offload off", {"activation.policy=unified"}, {"activation.forbid=[offload, remote_offload]"}},
      {"offload off", {"activation.offload=true"}, {"activation.offload=false"}},
      {"pipeline ZeRO-2 -> ZeRO-1 on the GPU", {"optimizer.gradient_shards=cpu"}, {"optimizer.gradient_shards=gpu"}},
      {"split weight gradients off", {"schedule.split_wgrad=true"}, {"schedule.split_wgrad=false"}},
      {"vision in bubbles -> up front", {"vision.placement=bubbles"}, {"vision.placement=decoupled"}},
      {"interleaving off", {"parallel.cut=even"}, {"parallel.vpp=1"}},
      {"interleaving off",
       {"parallel.cut=listed"},
       {"parallel.vpp=1", "parallel.stage_layers=[]", "parallel.partition=balanced"}},
      {"overlap of gradient reduction off", {"overlap.grad_reduce=true"}, {"overlap.grad_reduce=false"}},
      {"overlap of parameter gathering off", {"overlap.param_gather=true"}, {"overlap.param_gather=false"}},
      {"per-head Muon -> AdamW", {"optimizer.name=muon_per_head"}, {"optimizer.name=adamw"}},
      {"workload-aware grouped GEMMs -> fixed order", {"moe.grouped_gemm=workload_aware"}, {"moe.grouped_gemm=fixed"}},
      {"shared experts beside the exchanges -> in line", {"moe.overlap_shared=true"}, {"moe.overlap_shared=false"}},
      {"router balancing off", {}, {"moe.balancing=none"}},
      {"routing skew -> balanced", {}, {"moe.routing={source: balanced}"}},
  };
  return table;
}

namespace {

std::string text_of(const Scenario& s, const std::string& key);

// Context-parallel KDA layers pass states on instead of exchanging heads for rows.
bool exchanges_states(const Scenario& s) {
  const ParallelConfig& p = s.parallel;
  const std::string& exchange = p.kda_exchange == "auto" ? p.cp_method : p.kda_exchange;
  return p.cp > 1 && exchange != "all_to_all" &&
         std::any_of(s.model.layers.begin(), s.model.layers.end(),
                     [](const LayerSpec& l) { return l.attention.kind == AttentionKind::kda; });
}

bool applies(const Mechanism& m, const Scenario& base) {
  for (const std::string& a : m.applies) {
    const std::size_t equals = a.find('=');
    if (text_of(base, a.substr(0, equals)) != a.substr(equals + 1)) return false;
  }
  return true;
}

// The few keys that tell whether a mechanism is there at all.
std::string text_of(const Scenario& s, const std::string& key) {
  const auto word = [](bool b) { return std::string(b ? "true" : "false"); };
  if (key == "model") return s.model.name;
  if (key == "attnres.pipeline") return s.attnres.pipeline;
  if (key == "model.attnres") return word(s.model.attnres_block > 0);
  if (key == "moe.dispatcher") return s.moe.dispatcher;
  if (key == "moe.grouped_gemm") return s.moe.grouped_gemm;
  if (key == "moe.overlap_shared") return word(s.moe.overlap_shared);
  if (key == "parallel.kcp") return word(exchanges_states(s));
  if (key == "parallel.cut") return s.parallel.stage_layers.empty() ? "even" : "listed";
  if (key == "activation.policy") return s.activation.policy;
  if (key == "vision.placement") return s.vision.placement;
  if (key == "activation.offload") return word(s.activation.offload);
  if (key == "optimizer.gradient_shards") return s.optimizer.gradient_shards;
  if (key == "optimizer.name") return s.optimizer.name;
  if (key == "schedule.split_wgrad") return word(s.schedule.split_wgrad);
  if (key == "overlap.grad_reduce") return word(s.overlap.grad_reduce);
  if (key == "overlap.param_gather") return word(s.overlap.param_gather);
  return {};
}

// What is off: overrides and changes of the model, in the table's order.
struct Off {
  std::vector<std::string> overrides;
  std::vector<bool (*)(Scenario&)> changes;
  bool policy = false;  // the activation policy is among them
  void add(const Mechanism& m) {
    for (const std::string& o : m.off) policy = policy || o.starts_with("activation.");
    overrides.insert(overrides.end(), m.off.begin(), m.off.end());
    if (m.change) changes.push_back(m.change);
  }
};

Evaluation with_off(const std::string& path, const Off& off, MachineStore& machines, EvaluateOptions options) {
  if (off.policy) options.reuse.choices.reset();
  try {
    Scenario s = load_scenario(path, off.overrides);
    for (const auto change : off.changes) change(s);
    return evaluate(std::move(s), machines, options);
  } catch (const ConfigError& e) {
    Evaluation out;
    out.reason = Reason::no_effect;
    out.text = e.problems().empty() ? e.what() : e.problems().front().key + ": " + e.problems().front().what;
    return out;
  }
}

// Policy auto: rows keep what was chosen for the scenario, so that they show their mechanism and not another search.
EvaluateOptions with_choices(const Scenario& scenario, const Evaluation& base, MachineStore& machines,
                             EvaluateOptions options) {
  if (scenario.activation.policy != "auto" || !base.prediction.plan) return options;
  options.reuse.choices = std::make_shared<const std::vector<PolicyChoice>>(base.prediction.plan->choices);
  const Evaluation again = evaluate(scenario, machines, options);
  // A preset that won as a whole has no choices that say all of it.
  if (again.prediction.summary.fingerprint != base.prediction.summary.fingerprint) options.reuse.choices.reset();
  return options;
}

AblationRow make_row(const Mechanism& m, bool cumulative, const Evaluation& e, const StepSummary& against) {
  AblationRow row;
  row.name = m.name;
  row.cumulative = cumulative;
  row.reason = e.reason;
  row.text = e.text;
  if (!e.simulated()) return row;
  row.summary = e.prediction.summary;
  row.step_change_s = row.summary.step.seconds() - against.step.seconds();
  row.mfu_change = row.summary.mfu_pct - against.mfu_pct;
  row.memory_change_gib = row.summary.peak_reserved.gibibytes() - against.peak_reserved.gibibytes();
  return row;
}

}  // namespace

Ablation ablate(const std::string& path, const std::vector<std::string>& overrides, MachineStore& machines,
                const EvaluateOptions& asked) {
  const Scenario scenario = load_scenario(path, overrides);
  EvaluateOptions whole = asked;
  whole.keep_graph = true;
  const Evaluation base = evaluate(scenario, machines, whole);
  if (!base.simulated()) throw ConfigError(base.text);
  const EvaluateOptions options = with_choices(scenario, base, machines, asked);
  Ablation out;
  out.base = base.prediction.summary;
  std::vector<AblationRow> cumulative;
  Off all{overrides, {}};
  StepSummary last = out.base;
  for (const Mechanism& m : mechanisms()) {
    Scenario trial = scenario;
    if (!applies(m, scenario) || (m.change && !m.change(trial))) continue;
    Off one{overrides, {}};
    one.add(m);
    const Evaluation single = with_off(path, one, machines, options);
    if (single.simulated() && single.prediction.summary.fingerprint == out.base.fingerprint &&
        single.prediction.summary.peak_reserved == out.base.peak_reserved)
      continue;  // it was off already
    out.rows.push_back(make_row(m, false, single, out.base));
    Off next = all;
    next.add(m);
    const Evaluation sum = with_off(path, next, machines, options);
    cumulative.push_back(make_row(m, true, sum, last));
    if (!sum.simulated()) continue;
    all = std::move(next);
    last = sum.prediction.summary;
  }
  out.rows.insert(out.rows.end(), cumulative.begin(), cumulative.end());
  return out;
}

CsvTable ablation_table(const Ablation& a) {
  CsvTable out({{"mechanism", "text", "what is off", "scenario"},
                {"mode", "text", "base: the scenario; single: only this is off; cumulative: all before are off too"},
                {"reason", "text", "ok, or why there is no number"},
                {"step_time_s", "s", "time of one training step"},
                {"step_change_s", "s", "against the scenario (single) or the row before (cumulative)"},
                {"mfu_pct", "%", "model FLOPs over the dense peak"},
                {"mfu_change_pct", "%", "change of the MFU, percentage points"},
                {"peak_reserved_gib", "GiB", "peak held by the process, fullest GPU"},
                {"memory_change_gib", "GiB", "change of that peak"},
                {"fits", "text", "true when the memory suffices"},
                {"note", "text", "details of the reason"}});
  const auto row = [&](const std::string& name, const char* mode, const AblationRow& r) {
    const bool good = r.reason == Reason::ok || r.reason == Reason::memory;
    const auto n = [&](double v) { return good ? csv_number(v) : std::string(); };
    out.add({name, mode, to_string(r.reason), n(r.summary.step.seconds()), n(r.step_change_s), n(r.summary.mfu_pct),
             n(r.mfu_change), n(r.summary.peak_reserved.gibibytes()), n(r.memory_change_gib),
             good ? (r.summary.fits ? "true" : "false") : "", r.text});
  };
  AblationRow base;
  base.summary = a.base;
  row("scenario", "base", base);
  for (const AblationRow& r : a.rows) row(r.name, r.cumulative ? "cumulative" : "single", r);
  return out;
}

}  // namespace k3sim
