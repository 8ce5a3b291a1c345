// k3sim capacity: time, GPUs, cost and goodput of a training run. Source: product-spec section 2; engine-design 15.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "sim/base/units_text.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/planner/capacity.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario, tokens, budget, checkpoint = "5 s", restart = "10 min", detail = "kernel";
  double days = 0, gpus = 0, price = 0, mtbf = 50'700, spares = 0, stragglers = 0;
  std::vector<std::string> set;
  bool allow_assumed = false;
};

Time time_option(const char* name, const std::string& text) {
  const Parsed<Time> t = parse_time(text);
  if (!t) throw UsageError(fmt::format("{} '{}': {}", name, text, t.why));
  return *t.value;
}

double count_option(const char* name, const std::string& text) {
  const Parsed<std::int64_t> n = parse_count(text, "tokens");
  if (!n || *n.value <= 0) throw UsageError(fmt::format("{} '{}': {}", name, text, n ? "must be above 0" : n.why));
  return static_cast<double>(*n.value);
}

CapacityQuestion question(const Options& o) {
  CapacityQuestion q;
  q.tokens = count_option("--tokens", o.tokens);
  if (o.days > 0) q.days = o.days;
  if (o.gpus > 0) q.gpus = o.gpus;
  if (!o.budget.empty()) q.budget = count_option("--budget", o.budget);
  if ((q.days ? 1 : 0) + (q.gpus ? 1 : 0) + (q.budget ? 1 : 0) != 1)
    throw UsageError("give exactly one of --days, --gpus and --budget");
  q.price_per_gpu_hour = o.price;
  q.spare_share = o.spares / 100.0;
  q.straggler_share = o.stragglers / 100.0;
  q.failures.gpu_hours_per_interruption = o.mtbf;
  q.failures.checkpoint_block = time_option("--checkpoint", o.checkpoint);
  q.failures.restart = time_option("--restart", o.restart);
  return q;
}

nlohmann::ordered_json answer_json(const CapacityAnswer& a, const CapacityQuestion& q, const StepSummary& s) {
  nlohmann::ordered_json j{{"tokens", q.tokens},
                           {"gpus", a.gpus},
                           {"days", a.days},
                           {"gpu_hours", a.gpu_hours},
                           {"cost_usd", a.cost},
                           {"cost_usd_per_trillion_tokens", a.cost_per_trillion},
                           {"price_per_gpu_hour", a.price},
                           {"tokens_per_s", a.tokens_per_s},
                           {"goodput_pct", 100.0 * a.goodput.share},
                           {"hours_between_interruptions", a.goodput.hours_between},
                           {"checkpoint_every_s", a.goodput.checkpoint_every_s},
                           {"mfu_pct", s.mfu_pct},
                           {"extrapolated", a.extrapolated},
                           {"gpus_for_weights", a.gpus_for_weights},
                           {"gpus_for_training_state", a.gpus_for_states}};
  for (const GoodputLever& l : goodput_levers(a.gpus, q.failures)) j["levers"][l.name] = 100.0 * l.goodput;
  return j;
}

std::string answer_text(const Scenario& scenario, const CapacityAnswer& a, const CapacityQuestion& q,
                        const StepSummary& s, bool colour) {
  std::string out =
      fmt::format("{:.3g} tokens of {} on {:.0f} {}: {:.1f} days, {:.3f} M GPU hours, ${:.0f}\n", q.tokens,
                  scenario.model.name, a.gpus, scenario.cluster.gpu, a.days, a.gpu_hours / 1e6, a.cost);
  TextTable t({"", ""});
  t.add({"MFU while it runs", fmt::format("{:.2f} %", s.mfu_pct)});
  t.add({"tokens per second, failures included", fmt::format("{:.0f}", a.tokens_per_s)});
  t.add({"goodput", fmt::format("{:.1f} %", 100.0 * a.goodput.share)});
  t.add({"time between interruptions", fmt::format("{:.1f} h", a.goodput.hours_between)});
  t.add({"best checkpoint interval", fmt::format("{:.1f} min", a.goodput.checkpoint_every_s / 60.0)});
  t.add({"price per GPU hour", a.price > 0 ? fmt::format("${:.2f}", a.price) : "none given"});
  t.add({"cost per trillion tokens", fmt::format("${:.0f}", a.cost_per_trillion)});
  out += t.to_text(colour);
  out += fmt::format("at least {} GPUs hold the weights, at least {} the training state\n", a.gpus_for_weights,
                     a.gpus_for_states);
  const std::vector<GoodputLever> levers = goodput_levers(a.gpus, q.failures);
  out +=
      fmt::format("goodput would gain most from {} ({:.1f} %)\n", levers.front().name, 100.0 * levers.front().goodput);
  if (a.extrapolated)
    out += fmt::format("throughput per GPU is simulated on {} GPUs and held\n", scenario.cluster.gpus());
  if (!s.fits)
    out += fmt::format("note: the scenario's step is short of memory by {:.1f} GiB\n", s.short_by.gibibytes());
  return out;
}

int run(const Options& o, CommandContext& context) {
  const CapacityQuestion q = question(o);
  const Scenario scenario = load_scenario(o.scenario, o.set);
  const Machine machine = load_machine(scenario);
  StepOptions step;
  step.allow_assumed = o.allow_assumed;
  step.graph.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  const StepSummary s = predict_step(scenario, machine, step).summary;
  const CapacityAnswer a = answer_capacity(scenario, machine, s, q);
  if (context.json)
    context.out << answer_json(a, q, s).dump(2) << "\n";
  else
    context.out << answer_text(scenario, a, q, s, context.colour());
  return 0;
}

}  // namespace

void add_capacity_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "capacity", "time, GPUs, cost and goodput of a training run",
                            "k3sim capacity k3_2048_h800 --tokens 20T --days 60");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--tokens", o->tokens, "tokens to train, for example 20T")->required();
  c->add_option("--days", o->days, "deadline; answers with GPUs")->check(CLI::PositiveNumber);
  c->add_option("--gpus", o->gpus, "GPUs; answers with days")->check(CLI::PositiveNumber);
  c->add_option("--budget", o->budget, "USD, for example 50M; answers with the most GPUs it pays");
  c->add_option("--price", o->price, "USD per GPU hour; default: of the scenario or the GPU profile")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--gpu-hours-per-failure", o->mtbf, "GPU hours per unexpected interruption (50700)")
      ->check(CLI::PositiveNumber);
  c->add_option("--checkpoint", o->checkpoint, "what a checkpoint blocks training for (5 s)");
  c->add_option("--restart", o->restart, "detection, rescheduling, loading and warm-up (10 min)");
  c->add_option("--spares", o->spares, "spare nodes in per cent of those that work")->check(CLI::Range(0.0, 100.0));
  c->add_option("--stragglers", o->stragglers, "step time lost to slow ranks in per cent")
      ->check(CLI::Range(0.0, 90.0));
  c->add_option("--detail", o->detail, "step or kernel (default)")->check(CLI::IsMember({"step", "kernel"}));
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
