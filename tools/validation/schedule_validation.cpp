// See schedule_validation.h. Source: validation README; arXiv:2505.09343 table 4 (parts of the step).
#include "tools/validation/schedule_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"
#include "tools/import/predicted_trace.h"
#include "tools/report/step_view.h"
#include "tools/report/summary_json.h"
#include "tools/validation/case_scenario.h"

namespace k3sim {

namespace {

constexpr const char* kPairScenario = "scenarios/deepseek_v3_trace_h800";
constexpr double kPairMs = 129.012;  // kernel span of the public trace (kernels.yaml, dualpipe-chunk-dsv3-h800)
constexpr const char* kDualPipeCase = "dsv3-isca-mpft";

bool is_schedule_group(const Case& c) {
  return c.group == "zero-bubble" || c.group == "vocabulary-parallelism" || c.group == "controllable-memory-pp" ||
         c.group == "deepseek-v3";
}

bool is_plain_1f1b(const Case& c) {
  const bool named = c.schedule == "1f1b" || c.schedule.rfind("1F1B, embedding on first stage", 0) == 0;
  return named && c.parallel.vpp.value_or(1) == 1;
}

// What two runs must share for their speeds to tell about the schedule.
std::string setting(const Case& c) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", c.group, c.model.name, c.model.layers, c.model.vocab,
                     c.model.sequence, c.gpus, c.gbs.value_or(0), c.mbs.value_or(0), c.parallel.pp.value_or(0));
}

// 1F1B with recomputation differs by the recomputation, not by the schedule.
bool is_comparable(const Case& c) {
  return c.schedule != "1f1b-r" && c.group != "deepseek-v3";
}

ValidationRow speed_row(const ValidationRow& run, const ValidationRow* base) {
  ValidationRow r = run;
  r.kind = "speed";
  r.metric = "speed_vs_1f1b";
  r.measured = r.predicted = 0;
  if (run.status != "predicted") return r;
  if (base == nullptr || base->status != "predicted") {
    r.status = "skipped";
    r.reason = "no 1F1B run of the same model, GPUs and batch among the cases";
    return r;
  }
  r.measured = base->measured / run.measured;
  r.predicted = base->predicted / run.predicted;
  r.reason = "against " + base->id;
  return r;
}

ValidationRow pair_row() {
  const Scenario scenario = load_scenario(data_path(kPairScenario));
  const PredictedTrace trace = predict_trace(scenario, load_machine(scenario), TraceUnit::pair, 0);
  ValidationRow r;
  r.id = "dualpipe-chunk-dsv3-h800";
  r.group = r.family = "deepseek-v3-trace";
  r.tier = "A";
  r.kind = "pair";
  r.status = "predicted";
  r.metric = "pair_ms";
  r.measured = kPairMs;
  r.predicted = static_cast<double>(trace.span_ns) / 1e6;
  r.gpu = "H800-SXM5-80GB";
  r.precision = scenario.precision.compute;
  r.moe = true;
  r.reason = "against " + std::string(kPairScenario);
  return r;
}

}  // namespace

std::vector<ValidationRow> validate_schedules(const std::vector<Case>& cases, int threads) {
  std::vector<Case> chosen;
  for (const Case& c : cases)
    if (is_schedule_group(c)) chosen.push_back(c);
  std::map<std::string, const Case*> by_id;
  for (const Case& c : chosen) by_id[c.id] = &c;
  const std::vector<ValidationRow> all = validate_cases(chosen, threads);
  std::map<std::string, const ValidationRow*> bases;
  for (const ValidationRow& r : all) {
    const Case& c = *by_id.at(r.id);
    if (r.kind == "model" && is_plain_1f1b(c)) bases.emplace(setting(c), &r);
  }
  std::vector<ValidationRow> rows;
  for (const ValidationRow& r : all) {
    const Case& c = *by_id.at(r.id);
    if (r.kind == "memory") rows.push_back(r);
    if (r.kind != "model" || is_plain_1f1b(c)) continue;
    if (c.group == "deepseek-v3") {
      rows.push_back(r);
      rows.back().kind = "step";
    } else if (is_comparable(c)) {
      const auto base = bases.find(setting(c));
      rows.push_back(speed_row(r, base == bases.end() ? nullptr : base->second));
    }
  }
  rows.push_back(pair_row());
  return rows;
}

namespace {

enum Part : std::size_t { kForward, kBackward, kWeight, kPair, kIdle, kUpdate, kParts };

Part part_of(const Action& a) {
  if (a.kind == ActionKind::kOverlap) return kPair;
  if (a.kind == ActionKind::kForward) return kForward;
  return a.kind == ActionKind::kWeightGrad ? kWeight : kBackward;
}

bool is_pipeline_wait(int cause) {
  const std::string key = breakdown_parts()[static_cast<std::size_t>(cause)].key;
  return key == "bubble" || key == "pp";
}

}  // namespace

std::vector<StepPart> dualpipe_parts(const std::vector<Case>& cases) {
  const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.id == kDualPipeCase; });
  if (found == cases.end()) return {};
  const CaseScenario mapped = case_scenario(*found);
  StepOptions options;
  options.allow_assumed = options.keep_graph = true;
  const StepPrediction p = predict_step(*mapped.scenario, load_machine(*mapped.scenario), options);
  // An action lasts on the compute stream without what it waits for other pipeline ranks: DualPipe's runtime receives
  // the inputs of both halves before an overlapped pair begins, so that this waiting is bubble.
  std::vector<double> sums(kParts, 0.0);
  const auto ranks = static_cast<double>(p.ranks.size());
  double busy = 0;
  for (const RankView& view : step_view(p))
    for (const ActionBar& bar : view.bars) {
      if (bar.span < 0) continue;
      Time own = bar.finish - bar.start;
      for (const auto& [cause, idle] : bar.idle)
        if (is_pipeline_wait(cause)) own -= idle;
      const double seconds = own.seconds() / ranks;
      sums[part_of(p.graph->spans[static_cast<std::size_t>(bar.span)].action)] += seconds;
      busy += seconds;
    }
  sums[kUpdate] = p.summary.mean.optimizer.seconds();
  sums[kIdle] = p.summary.step.seconds() - busy - sums[kUpdate];
  return {{"1F", 1.13, sums[kForward]}, {"1B", 1.99, sums[kBackward]}, {"1W", 0.48, sums[kWeight]},
          {"1F1B", 13.95, sums[kPair]}, {"bubble", 2.06, sums[kIdle]}, {"optimizer", 0.29, sums[kUpdate]}};
}

}  // namespace k3sim
