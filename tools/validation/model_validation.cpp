#include "tools/validation/model_validation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "sim/base/error.h"
#include "tools/validation/case_scenario.h"
#include "tools/validation/case_target.h"
#include "tools/validation/mapping_search.h"

namespace k3sim {

namespace {

std::string size_class(double billions) {
  return billions < 5     ? "<5B"
         : billions < 20  ? "5-20B"
         : billions < 100 ? "20-100B"
         : billions < 300 ? "100-300B"
                          : ">300B";
}

ValidationRow row_of(const Case& c) {
  ValidationRow r;
  r.id = c.id;
  r.group = c.group;
  r.tier = c.tier;
  r.family = c.family;
  r.kind = "model";
  r.status = "skipped";
  r.gpu = c.gpu.substr(0, c.gpu.find(' '));
  r.precision = c.precision;
  r.moe = c.model.experts > 0;
  r.size_class = size_class(c.model.total_b);
  return r;
}

struct Job {
  CaseScenario mapped;
  const Machine* machine = nullptr;
  std::vector<Scenario> layouts;  // the source printed the best of these
};

Job job_of(const Case& c, const std::string& network, MachineCache& machines) {
  Job job;
  job.mapped = case_scenario(c);
  if (is_grid_search(c))
    for (const Case& layout : grid_layouts(c)) {
      CaseScenario mapped = case_scenario(layout);
      if (!mapped.scenario) continue;
      job.layouts.push_back(*mapped.scenario);
      if (job.layouts.size() > 1) continue;
      job.mapped = std::move(mapped);
      job.mapped.assumptions.emplace_back("layout not stated: the fastest of our own grid search that fits");
    }
  if (job.mapped.scenario) job.machine = &machines.get(*job.mapped.scenario);
  if (network.empty()) return job;
  for (Scenario& s : job.layouts) s.network.mode = network;
  if (job.mapped.scenario) job.mapped.scenario->network.mode = network;
  return job;
}

// The fastest layout that fits.
std::optional<StepPrediction> best_layout(const Job& job, const StepOptions& options) {
  std::optional<StepPrediction> best;
  for (const Scenario& s : job.layouts) {
    try {
      StepPrediction p = predict_step(s, *job.machine, options);
      const auto rank = [](const StepPrediction& x) { return std::pair(!x.summary.fits, x.summary.step); };
      if (!best || rank(p) < rank(*best)) best = std::move(p);
    } catch (const ConfigError&) {
      continue;  // the schedule does not exist for these numbers
    }
  }
  return best;
}

StepOptions options_of(const std::string& network) {
  StepOptions options;
  options.allow_assumed = true;
  if (!network.empty()) options.graph.detail = StepGraphOptions::Detail::kernel;
  return options;
}

void predict(const Case& c, const Job& job, const StepOptions& options, ValidationRow& step, ValidationRow* memory) {
  const auto skip = [&](const std::string& why) {
    step.reason = why;
    if (memory) memory->reason = why;
  };
  if (!job.mapped.scenario) return skip(job.mapped.reason);
  if (!job.machine) return skip("no machine profile");
  try {
    std::optional<StepPrediction> found = best_layout(job, options);
    if (!found && !job.layouts.empty()) return skip("no layout of the grid search is possible");
    if (!found) found = predict_step(*job.mapped.scenario, *job.machine, options);
    const StepPrediction& p = *found;
    if (const auto target = step_target(c)) {
      step.status = "predicted";
      step.metric = "step_time_s";
      step.measured = target->step_time_s;
      step.predicted = p.summary.step.seconds();
    } else {
      step.reason = "no step time or rate is given";
    }
    if (!memory) return;
    const auto target = memory_target(c);
    memory->status = "predicted";
    memory->metric = target->measure == MemoryMeasure::device ? "peak_device_gib"
                     : target->reserved                       ? "peak_reserved_gib"
                                                              : "peak_allocated_gib";
    memory->measured = target->gib;
    Bytes allocated, reserved, device;
    for (const RankMemory& m : p.memory) {
      allocated = std::max(allocated, m.allocated);
      reserved = std::max(reserved, m.reserved);
      device = std::max(device, m.reserved + m.outside);
    }
    const Bytes predicted = target->measure == MemoryMeasure::device ? device : target->reserved ? reserved : allocated;
    memory->predicted = predicted.as_double() / target->unit_bytes;
  } catch (const ConfigError& e) {
    skip(e.problems().front().what);
  }
}

}  // namespace

std::vector<ValidationRow> validate_cases(const std::vector<Case>& cases, int threads, const std::string& network) {
  const StepOptions options = options_of(network);
  std::vector<Job> jobs(cases.size());
  MachineCache machines;
  for (std::size_t i = 0; i < cases.size(); ++i) jobs[i] = job_of(cases[i], network, machines);
  std::vector<ValidationRow> steps(cases.size()), memories(cases.size());
  std::vector<char> has_memory(cases.size(), 0);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    steps[i] = memories[i] = row_of(cases[i]);
    steps[i].assumptions = jobs[i].mapped.assumptions;
    memories[i].kind = "memory";
    has_memory[i] = memory_target(cases[i]).has_value();
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++)
      predict(cases[i], jobs[i], options, steps[i], has_memory[i] ? &memories[i] : nullptr);
  };
  std::vector<std::jthread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  pool.clear();
  std::vector<ValidationRow> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rows.push_back(std::move(steps[i]));
    if (has_memory[i]) rows.push_back(std::move(memories[i]));
  }
  return rows;
}

ErrorSummary summarize_percentages(const std::vector<double>& errors_pct) {
  ErrorSummary s;
  s.predicted = static_cast<int>(errors_pct.size());
  if (errors_pct.empty()) return s;
  std::vector<double> abs;
  double sum = 0, sum_abs = 0;
  for (double e : errors_pct) abs.push_back(std::fabs(e)), sum += e, sum_abs += std::fabs(e);
  std::sort(abs.begin(), abs.end());
  const auto quantile = [&](double q) {
    return abs[static_cast<std::size_t>(q * static_cast<double>(abs.size() - 1) + 0.5)];
  };
  s.median_abs = quantile(0.5);
  s.p90_abs = quantile(0.9);
  s.bias = sum / static_cast<double>(abs.size());
  s.mean_abs = sum_abs / static_cast<double>(abs.size());
  return s;
}

ErrorSummary summarize_errors(const std::vector<const ValidationRow*>& rows) {
  std::vector<double> errors;
  for (const ValidationRow* r : rows)
    if (r->status == "predicted") errors.push_back(r->error_pct());
  ErrorSummary s = summarize_percentages(errors);
  s.skipped = static_cast<int>(rows.size() - errors.size());
  return s;
}

}  // namespace k3sim
