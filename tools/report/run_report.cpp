#include "tools/report/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/build/step_errors.h"
#include "models/config/model_kinds.h"
#include "models/failure/goodput.h"
#include "sim/trace/chrome_json.h"
#include "tools/report/activation_table.h"
#include "tools/report/cost_audit_table.h"
#include "tools/report/csv.h"
#include "tools/report/expert_load.h"
#include "tools/report/network_heat.h"
#include "tools/report/network_summary.h"
#include "tools/report/run_timeline.h"
#include "tools/report/summary_json.h"

namespace k3sim {

namespace {

using Json = nlohmann::ordered_json;

struct KeyFigure {
  const char *key, *label, *unit, *source;
};
constexpr KeyFigure kFigures[] = {
    {"step_time_s", "step time", "s", "prediction"},
    {"step_time_p95_s", "step time, 95 % below", "s", "prediction; spread of the kernel fits"},
    {"tokens_per_s_per_gpu", "throughput per GPU", "tokens/s", "prediction"},
    {"model_tflops_per_gpu", "model FLOP rate per GPU", "TFLOP/s", "prediction"},
    {"mfu_pct", "MFU", "%", "prediction over the profile's dense peak"},
    {"hfu_pct", "HFU (recompute included)", "%", "prediction over the profile's dense peak"},
    {"peak_reserved_gib", "peak memory held", "GiB", "prediction, fullest GPU"},
    {"peak_allocated_gib", "peak memory handed out", "GiB", "prediction, fullest GPU"},
    {"capacity_gib", "memory of one GPU", "GiB", "profile"},
    {"fits", "fits into memory", "", "prediction"},
    {"short_by_gib", "missing memory", "GiB", "prediction, fullest GPU"},
    {"bubble_pct", "pipeline bubble", "%", "prediction, mean over pipeline ranks"},
    {"goodput_pct", "goodput under failures", "%", "Daly model; interruptions as on Llama 3's cluster"},
    {"cost_usd_per_step", "cost per step", "USD", "prediction; price from scenario or profile"},
    {"assumed_pct", "work without calibration", "%", "prediction; tiers datasheet and assumed"},
};

std::string figure_text(const Json& v) {
  if (v.is_boolean()) return v.get<bool>() ? "yes" : "no";
  return v.is_string() ? v.get<std::string>() : v.dump();
}

void add_figures(HtmlPage& page, const Json& summary) {
  std::vector<PageFigure> figures;
  for (const KeyFigure& f : kFigures)
    if (summary.contains(f.key) && !(f.key == std::string("short_by_gib") && summary.at(f.key) == 0.0))
      figures.push_back({f.key, f.label, figure_text(summary.at(f.key)), f.unit, f.source});
  page.figures("The answer in numbers", figures);
}

void add_waterfall(HtmlPage& page, const StepPrediction& p) {
  std::string parts, ranks;
  for (const BreakdownPart& part : breakdown_parts())
    parts += fmt::format("{}{{\"key\":{},\"what\":{},\"mean_s\":{:.9g}}}", parts.empty() ? "" : ",",
                         json_quoted(part.key), json_quoted(part.what), (p.summary.mean.*part.field).seconds());
  for (const RankBreakdown& b : p.ranks) {
    std::string row;
    for (const BreakdownPart& part : breakdown_parts())
      row += fmt::format("{}{:.6g}", row.empty() ? "" : ",", (b.*part.field).seconds());
    ranks += fmt::format("{}[{}]", ranks.empty() ? "" : ",", row);
  }
  page.section(
      "waterfall", "Where the step goes",
      fmt::format("{{\"step_s\":{:.9g},\"parts\":[{}],\"ranks\":[{}]}}", p.summary.step.seconds(), parts, ranks));
}

void add_network(HtmlPage& page, const RunReportInput& in) {
  page.table("Network", network_table(in.prediction));
  if (in.machine == nullptr) return;
  const std::vector<PageHeat> heat = network_heat(in.prediction, *in.machine);
  if (!heat.empty()) page.heat("", heat);
  const StepNetworkReport& links = in.prediction.summary.network;
  if (!links.classes.empty())
    page.table("", page_table("links", "Links that communication shared, by class and hottest first", "prediction",
                              network_table_csv(links)));
}

void add_expert_load(HtmlPage& page, const StepPrediction& p) {
  const std::optional<ExpertLoadSection> load = expert_load_section(p);
  if (!load) return;
  page.heat("Expert load and replicas", load->grids);
  page.table("", load->table);
}

void add_activation_policy(HtmlPage& page, const StepPrediction& p) {
  const std::vector<PageTable> tables = activation_page_tables(p);
  for (const PageTable& t : tables) page.table(&t == tables.data() ? "Activation policy" : "", t);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

std::string folding_text(const StepSummary& s) {
  const std::string why = unfolding_text(s.network);
  if (s.folded.empty()) return "Every rank was simulated; nothing was folded. " + why;
  if (!why.empty())
    return fmt::format("Folded dimensions of compute: {}. The network is {}. --unfold simulates the ranks one by one.",
                       joined(s.folded), why);
  return fmt::format(
      "Folded dimensions: {}. One rank stands for all members, because their work, their links and "
      "their waiting are the same; --unfold simulates them one by one.",
      joined(s.folded));
}

void add_assumptions(HtmlPage& page, const RunReportInput& in) {
  const StepSummary& s = in.prediction.summary;
  const Goodput g = daly_goodput(in.scenario.cluster.gpus());
  std::vector<std::string> text;
  text.push_back(
      fmt::format("Origin of costs: the worst tier used is '{}'; {:.1f} % of the work rests on datasheet or assumed "
                  "costs. Tiers from best to worst: measured, fitted, boundary (held at the edge of the measured "
                  "range), borrowed (transferred by a stated rule), datasheet, assumed.",
                  to_string(s.provenance), s.assumed_pct));
  text.push_back(folding_text(s));
  text.push_back(
      "MFU = model FLOPs / (step time x GPUs x dense peak of the matrix precision). Model FLOPs count causal "
      "attention at half, forward once and backward twice, no recompute. HFU counts the executed matrix FLOPs.");
  text.push_back(fmt::format(
      "Error bar: the true step time is below {:.3f} s with 95 % confidence, from the residuals of the kernel "
      "fits, families independent of each other.",
      s.step_p95.seconds()));
  const StepErrors& error = step_errors(in.scenario.model);
  text.push_back(fmt::format(
      "What the kernels' residuals leave out (framework, network, what a scenario does not say) is in the errors of "
      "published runs: of {} runs of {} models, predicted by constants fitted without their family, 80 % took {:.3f} "
      "to "
      "{:.3f} and 95 % {:.3f} to {:.3f} of the predicted time (k3sim validate --cross-validate).",
      error.runs, has_routed_experts(in.scenario.model) ? "MoE" : "dense", error.low80, error.high80, error.low95,
      error.high95));
  text.push_back(
      fmt::format("Goodput: an interruption every {:.1f} hours (50,700 GPU-hours each), a checkpoint every {:.0f} s "
                  "that blocks 5 s, 10 minutes to restart.",
                  g.hours_between, g.checkpoint_every_s));
  page.note("Assumptions and provenance", text);
}

void add_reproduce(HtmlPage& page, const RunReportInput& in) {
  page.note(
      "How to reproduce",
      {fmt::format("k3sim {} gives these numbers again, bit by bit (event fingerprint {:016x}, scenario SHA-256 {}):",
                   K3SIM_VERSION, in.prediction.summary.fingerprint, scenario_digest(in.scenario)),
       in.command, "Scenario, with all overrides applied:"},
      in.scenario.text);
}

}  // namespace

std::string run_answer(const Scenario& scenario, const StepSummary& s) {
  const double step = s.step.seconds();
  std::string out = fmt::format(
      "{} on {} x {}: step {:.3f} s (80 % interval {:.2f} to {:.2f} s), MFU {:.1f} %, {:.1f} tokens/s per GPU; ",
      scenario.model.name, scenario.cluster.gpus(), scenario.cluster.gpu, step,
      step * step_errors(scenario.model).low80, step * step_errors(scenario.model).high80, s.mfu_pct,
      s.tokens_per_s_per_gpu);
  if (!s.fits && s.short_by == Bytes(0))
    return out + fmt::format("does not fit: a node's host memory needs {:.0f} GiB, {:.0f} GiB there",
                             s.host_peak.gibibytes(), s.host_capacity.gibibytes());
  return out + (s.fits ? fmt::format("fits, {:.1f} of {:.1f} GiB", s.peak_reserved.gibibytes(), s.capacity.gibibytes())
                       : fmt::format("does not fit: {:.2f} GiB needed, {:.2f} GiB there, {:.2f} GiB missing",
                                     s.peak_reserved.gibibytes(), s.capacity.gibibytes(), s.short_by.gibibytes()));
}

HtmlPage run_report(const RunReportInput& in) {
  const StepPrediction& p = in.prediction;
  HtmlPage page(in.scenario.name.empty() ? "k3sim run" : in.scenario.name, run_answer(in.scenario, p.summary));
  const std::vector<RankView> views = step_view(p);
  add_figures(page, Json::parse(summary_json(in.scenario, p)));
  add_waterfall(page, p);
  page.section("timeline", "Pipeline timeline", timeline_json(p, views));
  page.section("kernels", "Inside one action", kernels_json(p, views));
  page.section("memory", "Memory", memory_curves_json(p, views, in.memory));
  add_activation_policy(page, p);
  add_network(page, in);
  add_expert_load(page, p);
  page.table("What the time rests on", cost_table(p));
  if (in.sensitivity) page.deltas("What would help most", *in.sensitivity);
  add_assumptions(page, in);
  add_reproduce(page, in);
  return page;
}

}  // namespace k3sim
