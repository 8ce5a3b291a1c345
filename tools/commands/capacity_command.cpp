// k3sim capacity: time, GPUs, cost and goodput of a training run. Source: product-spec section 2; engine-design 15.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "sim/base/units_text.h"
#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/planner/capacity.h"
#include "tools/result_pages/capacity_page.h"

namespace k3sim {

namespace {

struct Options {
  std::string scenario, tokens, budget, out, checkpoint, mode = "async", restart, spares = "replaced";
  std::string storage = "2 TB/s", against, detail = "kernel";
  double days = 0, gpus = 0, price = 0, mtbf = 0, stragglers = 0, factor = 0, repair_days = 5.5;
  FailureCauses causes;
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

SparePolicy spare_policy(const Options& o) {
  SparePolicy p;
  p.repair_hours = o.repair_days * 24.0;
  if (o.spares == "replaced") return p;
  p.kind = SparePolicy::Kind::covered;
  if (o.spares == "auto") return p;
  p.kind = SparePolicy::Kind::fixed;
  const auto [end, error] = std::from_chars(o.spares.data(), o.spares.data() + o.spares.size(), p.nodes);
  if (error != std::errc{} || end != o.spares.data() + o.spares.size() || p.nodes < 0)
    throw UsageError(fmt::format("--spares '{}': is a number of nodes, auto or replaced", o.spares));
  return p;
}

CapacityQuestion question(const Options& o) {
  CapacityQuestion q;
  if (!o.tokens.empty()) q.tokens = count_option("--tokens", o.tokens);
  if (o.days > 0) q.days = o.days;
  if (o.gpus > 0) q.gpus = o.gpus;
  if (!o.budget.empty()) q.budget = count_option("--budget", o.budget);
  const int given = (q.tokens ? 1 : 0) + (q.days ? 1 : 0) + (q.gpus ? 1 : 0) + (q.budget ? 1 : 0);
  if (given < 2 || given > 3)
    throw UsageError("give two or three of --tokens, --days, --gpus and --budget; the answer is the rest");
  if (o.against.empty() != (o.factor == 0)) throw UsageError("--against and --compute-factor go together");
  q.price_per_gpu_hour = o.price;
  q.spares = spare_policy(o);
  q.straggler_share = o.stragglers / 100.0;
  return q;
}

// Failure rates and checkpoint cost need the scenario: GPUs per node and bytes of the state.
void set_failures(const Options& o, const Scenario& s, const Machine& machine, CapacityQuestion& q) {
  q.failures.gpu_hours_per_interruption =
      o.mtbf > 0 ? o.mtbf : gpu_hours_per_interruption(o.causes, s.cluster.gpus_per_node);
  const double gpus = q.gpus.value_or(s.cluster.gpus());
  q.failures.restart = o.restart.empty() ? restart_time(gpus) : time_option("--restart", o.restart);
  if (!o.checkpoint.empty()) {
    q.failures.checkpoint_block = time_option("--checkpoint", o.checkpoint);
    return;
  }
  const Parsed<Bandwidth> storage = parse_bandwidth(o.storage);
  if (!storage) throw UsageError(fmt::format("--storage '{}': {}", o.storage, storage.why));
  const CheckpointCost c =
      checkpoint_cost(checkpoint_bytes(s), gpus, *storage.value, machine.gpu.host_link, o.mode == "async");
  q.failures.checkpoint_block = c.blocks;
  q.failures.checkpoint_write = c.writes;
}

struct Run {
  Scenario scenario;
  StepSummary step;
  CapacityAnswer answer;
  CapacityQuestion question;
  std::optional<ScalingComparison> scaling;
  std::string against;
};

nlohmann::ordered_json answer_json(const Run& r) {
  const CapacityAnswer& a = r.answer;
  const FailureRates& f = r.question.failures;
  nlohmann::ordered_json j{{"tokens", a.tokens},
                           {"gpus", a.gpus},
                           {"days", a.days},
                           {"gpu_hours", a.gpu_hours},
                           {"paid_gpu_hours", a.paid_gpu_hours},
                           {"cost_usd", a.cost},
                           {"cost_usd_per_trillion_tokens", a.cost_per_trillion},
                           {"price_per_gpu_hour", a.price},
                           {"tokens_per_s", a.tokens_per_s},
                           {"goodput_pct", 100.0 * a.goodput.share},
                           {"effective_pct", 100.0 * a.effective},
                           {"spare_nodes", a.spare_nodes},
                           {"nodes_covered_pct", 100.0 * a.covered},
                           {"hours_between_interruptions", a.goodput.hours_between},
                           {"restart_s", f.restart.seconds()},
                           {"checkpoint_blocks_s", f.checkpoint_block.seconds()},
                           {"checkpoint_writes_s", f.checkpoint_write.seconds()},
                           {"checkpoint_every_s", a.goodput.checkpoint_every_s},
                           {"mfu_pct", r.step.mfu_pct},
                           {"fits", r.step.fits},
                           {"extrapolated", a.extrapolated},
                           {"gpus_for_weights", a.gpus_for_weights},
                           {"gpus_for_training_state", a.gpus_for_states},
                           {"broken_limits", a.broken}};
  for (const GoodputLever& l : goodput_levers(a.gpus, f)) j["levers"][l.name] = 100.0 * l.goodput;
  if (r.scaling)
    j["scaling"] = {{"against", r.against},
                    {"compute_factor", r.scaling->compute_factor},
                    {"system_efficiency", r.scaling->system},
                    {"gpu_hours_ratio", r.scaling->gpu_hours},
                    {"scaling_efficiency", r.scaling->efficiency}};
  return j;
}

std::string notes_text(const Run& r) {
  const CapacityAnswer& a = r.answer;
  std::string out = fmt::format("at least {} GPUs hold the weights, at least {} the training state\n",
                                a.gpus_for_weights, a.gpus_for_states);
  const std::vector<GoodputLever> levers = goodput_levers(a.gpus, r.question.failures);
  out +=
      fmt::format("goodput would gain most from {} ({:.1f} %)\n", levers.front().name, 100.0 * levers.front().goodput);
  if (r.scaling)
    out += fmt::format(
        "against {}: {:.2f} of its compute for equal loss (declared), {:.2f} of its speed (simulated): {:.2f} of its "
        "GPU hours, scaling efficiency {:.2f}\n",
        r.against, r.scaling->compute_factor, r.scaling->system, r.scaling->gpu_hours, r.scaling->efficiency);
  if (a.extrapolated)
    out += fmt::format("throughput per GPU is simulated on {} GPUs and held\n", r.scenario.cluster.gpus());
  if (!r.step.fits && r.step.short_by > Bytes(0))
    out += fmt::format("note: the scenario's step is short of memory by {:.1f} GiB\n", r.step.short_by.gibibytes());
  for (const std::string& b : a.broken) out += "no: " + b + "\n";
  return out;
}

std::string answer_text(const Run& r, bool colour) {
  const CapacityAnswer& a = r.answer;
  std::string out =
      fmt::format("{:.4g}T tokens of {} on {:.0f} {}: {:.1f} days, {:.3f} M GPU hours, ${:.0f}\n", a.tokens / 1e12,
                  r.scenario.model.name, a.gpus, r.scenario.cluster.gpu, a.days, a.gpu_hours / 1e6, a.cost);
  TextTable t({"", ""});
  t.add({"MFU while it runs", fmt::format("{:.2f} %", r.step.mfu_pct)});
  t.add({"tokens per second, failures included", fmt::format("{:.0f}", a.tokens_per_s)});
  t.add({"goodput under failures", fmt::format("{:.1f} %", 100.0 * a.goodput.share)});
  t.add({"time between interruptions", fmt::format("{:.1f} h", a.goodput.hours_between)});
  t.add({"restart after an interruption", fmt::format("{:.1f} min", r.question.failures.restart.seconds() / 60.0)});
  t.add({"a checkpoint blocks", fmt::format("{:.2f} s", r.question.failures.checkpoint_block.seconds())});
  if (r.question.failures.checkpoint_write > Time())
    t.add({"and is in storage after", fmt::format("{:.1f} s", r.question.failures.checkpoint_write.seconds())});
  t.add({"best checkpoint interval", fmt::format("{:.1f} min", a.goodput.checkpoint_every_s / 60.0)});
  if (r.question.spares.kind != SparePolicy::Kind::replaced)
    t.add({"spare nodes", fmt::format("{}, enough {:.1f} % of the time", a.spare_nodes, 100.0 * a.covered)});
  t.add({"price per GPU hour", a.price > 0 ? fmt::format("${:.2f}", a.price) : "none given"});
  t.add({"cost per trillion tokens", fmt::format("${:.0f}", a.cost_per_trillion)});
  return out + t.to_text(colour) + notes_text(r);
}

StepSummary simulate(const Scenario& scenario, const Machine& machine, const Options& o) {
  StepOptions step;
  step.allow_assumed = o.allow_assumed;
  step.graph.detail = o.detail == "step" ? StepGraphOptions::Detail::step : StepGraphOptions::Detail::kernel;
  return predict_step(scenario, machine, step).summary;
}

int run(const Options& o, CommandContext& context) {
  Run r;
  r.question = question(o);
  r.scenario = load_scenario(o.scenario, o.set);
  const Machine machine = load_machine(r.scenario);
  set_failures(o, r.scenario, machine, r.question);
  r.step = simulate(r.scenario, machine, o);
  r.answer = answer_capacity(r.scenario, machine, r.step, r.question);
  if (!o.against.empty()) {
    const Scenario other = load_scenario(o.against);
    r.against = other.name.empty() ? o.against : other.name;
    r.scaling = compare_scaling(simulate(other, load_machine(other), o), r.step, o.factor);
  }
  if (!o.out.empty()) {
    const CapacityPageInput page{r.scenario, machine, r.step, r.question, context.command};
    OutputFolder out(o.out);
    out.add("capacity.json", answer_json(r).dump(2) + "\n");
    add_results(out, {{"capacity.csv", capacity_curve(page, r.answer)}}, capacity_page(page, r.answer));
    out.commit();
  }
  if (context.json)
    context.out << answer_json(r).dump(2) << "\n";
  else
    context.out << answer_text(r, context.colour());
  return r.answer.broken.empty() ? 0 : 1;
}

// What decides goodput and price.
void add_failure_options(CLI::App& c, Options& o) {
  c.add_option("--price", o.price, "USD per GPU hour; default: of the scenario or the GPU profile")
      ->check(CLI::NonNegativeNumber);
  c.add_option("--gpu-hours-per-failure", o.mtbf, "GPU hours per interruption of any cause, instead of the four below")
      ->check(CLI::PositiveNumber);
  const std::pair<const char*, double*> causes[] = {{"--gpu-mtbf", &o.causes.gpu},
                                                    {"--node-mtbf", &o.causes.node},
                                                    {"--link-mtbf", &o.causes.link},
                                                    {"--software-mtbf", &o.causes.software}};
  const char* what[] = {"hours between failures of one GPU (Llama 3: 79,200)", "of one host (50,100)",
                        "of one scale-out link (607,000)", "GPU hours per software failure (337,000)"};
  for (std::size_t i = 0; i < 4; ++i)
    c.add_option(causes[i].first, *causes[i].second, what[i])->check(CLI::PositiveNumber);
  c.add_option("--checkpoint", o.checkpoint, "time that a checkpoint blocks training, instead of the computed one");
  c.add_option("--checkpoint-mode", o.mode,
               "async (default): blocks for the copy to host memory; blocking: until stored")
      ->check(CLI::IsMember({"async", "blocking"}));
  c.add_option("--storage", o.storage, "write bandwidth of the checkpoint storage (2 TB/s)");
  c.add_option("--restart", o.restart,
               "detection, rescheduling, loading and warm-up; default: by job size (10 min on 2,048 GPUs)");
  c.add_option("--spares", o.spares,
               "spare nodes: a number, auto (cover repairs 99 % of the time) or replaced (default)");
  c.add_option("--repair-days", o.repair_days, "mean time of a node in repair (5.5)")->check(CLI::PositiveNumber);
  c.add_option("--stragglers", o.stragglers, "step time lost to slow ranks in per cent")->check(CLI::Range(0.0, 90.0));
}

}  // namespace

void add_capacity_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "capacity", "time, GPUs, cost and goodput of a training run",
                            "k3sim capacity k3_2048_h800 --tokens 20T --days 60");
  c->add_option("scenario", o->scenario, "scenario.yaml, its folder, or the name of a shipped scenario")->required();
  add_set_option(*c, o->set);
  c->add_option("--tokens", o->tokens, "tokens to train, for example 20T");
  c->add_option("--days", o->days, "deadline")->check(CLI::PositiveNumber);
  c->add_option("--gpus", o->gpus, "GPUs")->check(CLI::PositiveNumber);
  c->add_option("--budget", o->budget, "USD, for example 50M; two of these four give the others, a third is checked");
  add_failure_options(*c, *o);
  c->add_option("--against", o->against, "scenario of another recipe, to compare at equal loss");
  c->add_option("--compute-factor", o->factor,
                "training compute for equal loss over the other recipe's (K3: 0.4 of K2)")
      ->check(CLI::PositiveNumber);
  c->add_option("--out", o->out, "folder for capacity.json, capacity.csv and report.html");
  c->add_option("--detail", o->detail, "step or kernel (default)")->check(CLI::IsMember({"step", "kernel"}));
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
