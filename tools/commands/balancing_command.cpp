// k3sim balancing: Quantile Balancing beside the fixed step and an auxiliary loss, for a scenario's router: predicted
// MaxVio per global batch and per micro-batch after some steps, traffic and time of the statistics per step.
// Source: k3-facts section 2.9. Loads come from synthetic scores (models/moe/quantile_balancing.h), traffic and time
// from the scenario's model and cluster.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/build/router_balancing.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario;
  std::vector<std::string> set;
  int steps = 12, micro_batches = 4, tokens = 2048;
  double lasting = 0.5, fresh = 0.3, drift = 0.02;
};

struct Row {
  std::string method;
  BalancingTrace trace;
  Bytes layer_bytes, step_bytes;
  Time step_time;
};

const FfnSpec& router_of(const Scenario& s) {
  const auto moe =
      std::find_if(s.model.layers.begin(), s.model.layers.end(), [](const LayerSpec& l) { return l.ffn.is_moe(); });
  if (moe == s.model.layers.end()) throw ConfigError(fmt::format("{} has no experts", s.model.name), "model");
  return moe->ffn;
}

std::int64_t moe_layers(const Scenario& s) {
  return std::count_if(s.model.layers.begin(), s.model.layers.end(), [](const LayerSpec& l) { return l.ffn.is_moe(); });
}

Row compare(const Options& o, const std::string& method) {
  std::vector<std::string> set = o.set;
  set.push_back("moe.balancing=" + method);
  const Scenario s = load_scenario(o.scenario, set);
  const FfnSpec& ffn = router_of(s);
  BalancingSpec spec;
  spec.method = balancing_method(method);
  spec.experts = static_cast<int>(ffn.experts);
  spec.topk = static_cast<int>(ffn.topk);
  spec.steps = o.steps;
  spec.micro_batches = o.micro_batches;
  spec.tokens_per_micro_batch = o.tokens;
  spec.lasting_sigma = o.lasting;
  spec.micro_batch_sigma = o.fresh;
  spec.drift_sigma = o.drift;
  Row row{method, simulate_balancing(spec), {}, {}, {}};
  const Machine machine = load_machine(s);
  const StepPlan plan = make_step_plan(s, machine);
  row.layer_bytes = router_statistics_bytes(plan);
  row.step_bytes = row.layer_bytes * moe_layers(s);
  row.step_time = moe_layers(s) * router_statistics_time(plan);
  return row;
}

// Mean over the second half of the steps: what a run lives with.
double settled(const BalancingTrace& t, double BalancingStep::*value) {
  double sum = 0;
  const std::size_t from = t.steps.size() / 2;
  for (std::size_t i = from; i < t.steps.size(); ++i) sum += t.steps[i].*value;
  return sum / static_cast<double>(t.steps.size() - from);
}

int run(const Options& o, CommandContext& context) {
  std::vector<Row> rows;
  for (const char* method : {"none", "quantile", "fixed_step", "auxiliary_loss"}) rows.push_back(compare(o, method));
  if (context.json) {
    nlohmann::ordered_json j;
    for (const Row& r : rows)
      j["methods"].push_back({{"method", r.method},
                              {"max_violation_first_step", r.trace.steps.front().global_violation},
                              {"max_violation_global_batch", settled(r.trace, &BalancingStep::global_violation)},
                              {"max_violation_micro_batch", settled(r.trace, &BalancingStep::micro_batch_violation)},
                              {"bytes_per_layer", r.layer_bytes.count()},
                              {"bytes_per_step", r.step_bytes.count()},
                              {"all_layers_s", r.step_time.seconds()}});
    context.out << j.dump(2) << "\n";
    return 0;
  }
  TextTable t({"method", "MaxVio first step", "MaxVio global batch", "MaxVio micro-batch", "MB / layer", "MB / step",
               "all layers ms"});
  for (const Row& r : rows)
    t.add({r.method, fmt::format("{:.2f}", r.trace.steps.front().global_violation),
           fmt::format("{:.2f}", settled(r.trace, &BalancingStep::global_violation)),
           fmt::format("{:.2f}", settled(r.trace, &BalancingStep::micro_batch_violation)),
           fmt::format("{:.3f}", r.layer_bytes.as_double() / 1e6),
           fmt::format("{:.1f}", r.step_bytes.as_double() / 1e6), fmt::format("{:.2f}", 1e3 * r.step_time.seconds())});
  context.out << t.to_text(context.colour());
  return 0;
}

}  // namespace

void add_balancing_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "balancing", "router balancing methods: predicted load, traffic and time",
                            "k3sim balancing k3_2048_h800");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--steps", o->steps, "simulated steps; loads are means over the second half")
      ->check(CLI::Range(2, 10000));
  c->add_option("--micro-batches", o->micro_batches, "simulated per step")->check(CLI::Range(1, 4096));
  c->add_option("--tokens", o->tokens, "simulated per micro-batch")->check(CLI::Range(1, 1 << 20));
  c->add_option("--lasting", o->lasting, "spread of the experts' logits that stays")->check(CLI::Range(0.0, 10.0));
  c->add_option("--fresh", o->fresh, "spread drawn anew in every micro-batch")->check(CLI::Range(0.0, 10.0));
  c->add_option("--drift", o->drift, "random walk of the logits per step")->check(CLI::Range(0.0, 10.0));
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
