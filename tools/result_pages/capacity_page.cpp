#include "tools/result_pages/capacity_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace k3sim {

namespace {

std::string answer_line(const CapacityPageInput& in, const CapacityAnswer& a) {
  const double bar = in.step.step_p95.seconds() / in.step.step.seconds() - 1.0;
  std::string out = fmt::format(
      "{:.3g} T tokens of {} on {:.0f} x {}: {:.1f} days (+{:.1f} % at 95 % confidence), {:.3f} M GPU hours",
      a.tokens / 1e12, in.scenario.model.name, a.gpus, in.scenario.cluster.gpu, a.days, 100.0 * bar, a.gpu_hours / 1e6);
  if (a.price > 0) out += fmt::format(", {:.2f} M USD", a.cost / 1e6);
  return out + fmt::format("; goodput {:.1f} %", 100.0 * a.goodput.share);
}

std::vector<PageFigure> figures(const CapacityPageInput& in, const CapacityAnswer& a) {
  const auto n = [](double v) { return csv_number(v); };
  const char* asked = "question";
  const CapacityQuestion& q = in.question;
  return {
      {"tokens", "tokens to train", n(a.tokens), "tokens", q.tokens ? asked : "prediction"},
      {"gpus", "cluster", n(a.gpus), "GPUs", q.gpus ? asked : "prediction"},
      {"days", "duration", n(a.days), "days", "prediction"},
      {"gpu_hours", "GPU hours", n(a.gpu_hours), "h", "prediction"},
      {"cost_usd", "cost", n(a.cost), "USD", "prediction x price"},
      {"cost_usd_per_trillion_tokens", "cost per trillion tokens", n(a.cost_per_trillion), "USD", "prediction x price"},
      {"price_per_gpu_hour", "price per GPU hour", n(a.price), "USD",
       q.price_per_gpu_hour > 0 ? "question" : "scenario or profile"},
      {"tokens_per_s", "throughput, failures included", n(a.tokens_per_s), "tokens/s", "prediction"},
      {"mfu_pct", "MFU while it runs", n(in.step.mfu_pct), "%", "prediction over the profile's dense peak"},
      {"goodput_pct", "goodput under failures", n(100.0 * a.goodput.share), "%", "Daly model"},
      {"hours_between_interruptions", "between interruptions", n(a.goodput.hours_between), "h", "failure rates"},
      {"checkpoint_every_s", "best checkpoint interval", n(a.goodput.checkpoint_every_s), "s", "Daly model"},
      {"gpus_for_weights", "hold the weights", n(a.gpus_for_weights), "GPUs", "scenario and profile"},
      {"gpus_for_training_state", "hold the training state", n(a.gpus_for_states), "GPUs", "scenario and profile"}};
}

PageDeltas levers(const CapacityPageInput& in, const CapacityAnswer& a) {
  PageDeltas d;
  d.unit = "%";
  d.first = "goodput gained";
  d.larger_is_better = true;
  d.table = {"levers",
             "Goodput with one rate halved",
             "Daly model on the failure rates",
             {{"lever", "lever", "", "what is halved", true},
              {"goodput_pct", "goodput", "%", "useful share of wall time then"},
              {"gain_pct", "gain", "%", "percentage points"}},
             {}};
  for (const GoodputLever& l : goodput_levers(a.gpus, in.question.failures)) {
    const double gain = 100.0 * (l.goodput - a.goodput.share);
    d.rows.push_back({l.name, gain});
    d.table.rows.push_back({l.name, csv_number(100.0 * l.goodput), csv_number(gain)});
  }
  return d;
}

}  // namespace

CsvTable capacity_curve(const CapacityPageInput& in, const CapacityAnswer& a) {
  CsvTable out({{"gpus", "1", "number of GPUs", "question"},
                {"days", "days", "duration with failures"},
                {"cost_usd", "USD", "price of all GPUs, spares included"},
                {"goodput_pct", "%", "useful share of wall time under failures", "Daly model"},
                {"gpu_hours", "h", "GPU hours without spares"}});
  const double node = in.scenario.cluster.gpus_per_node;
  double last = 0;
  for (int i = -16; i <= 16; ++i) {
    CapacityQuestion q = in.question;
    q.tokens = a.tokens;
    q.days.reset();
    q.budget.reset();
    q.gpus = i == 0 ? a.gpus : std::max(1.0, std::round(a.gpus * std::exp2(i / 8.0) / node)) * node;
    if (*q.gpus == last) continue;
    last = *q.gpus;
    const CapacityAnswer x = answer_capacity(in.scenario, in.machine, in.step, q);
    out.add({csv_number(x.gpus), csv_number(x.days), csv_number(x.cost), csv_number(100.0 * x.goodput.share),
             csv_number(x.gpu_hours)});
  }
  return out;
}

HtmlPage capacity_page(const CapacityPageInput& in, const CapacityAnswer& a) {
  HtmlPage page("Capacity for " + (in.scenario.name.empty() ? in.scenario.model.name : in.scenario.name),
                answer_line(in, a));
  page.figures("The answer in numbers", figures(in, a));
  PageLines l;
  l.table = page_table("curve", "The same question with other numbers of GPUs", "prediction", capacity_curve(in, a));
  l.x = "gpus";
  l.y = a.price > 0 ? std::vector<std::string>{"days", "cost_usd", "goodput_pct"}
                    : std::vector<std::string>{"days", "goodput_pct"};
  l.mark = a.gpus;
  page.lines("Days, cost and goodput against the number of GPUs", l);
  page.deltas("What would raise the goodput", levers(in, a));
  std::vector<std::string> notes{
      "Days = tokens / (tokens per second and GPU x GPUs x goodput x share of time with enough nodes); throughput per "
      "GPU is simulated at the scenario's "
      "size and held: weak scaling over data-parallel replicas, whose gradient traffic per rank does not grow.",
      fmt::format(
          "Failures: one interruption per {:.0f} GPU hours, a checkpoint blocks {:.1f} s, a restart takes {:.1f} min; "
          "{} spare nodes (paid, not computing), enough {:.1f} % of the time; {:.1f} % of the step time lost to "
          "stragglers.",
          in.question.failures.gpu_hours_per_interruption, in.question.failures.checkpoint_block.seconds(),
          in.question.failures.restart.seconds() / 60.0, a.spare_nodes, 100.0 * a.covered,
          100.0 * in.question.straggler_share)};
  if (a.extrapolated)
    notes.push_back(fmt::format("The throughput per GPU was simulated on {} GPUs.", in.scenario.cluster.gpus()));
  if (!in.step.fits)
    notes.push_back(fmt::format("The scenario's step is short of memory by {:.1f} GiB.", in.step.short_by.gibibytes()));
  page.note("Assumptions and provenance", notes);
  page.note("How to reproduce",
            {fmt::format("k3sim {} gives these numbers again, bit by bit:", K3SIM_VERSION), in.command, "Scenario:"},
            in.scenario.text);
  return page;
}

}  // namespace k3sim
