// Source: product-spec section 7; see compare_memory.h.
#include "tools/commands/compare_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/import/snapshot_replay.h"
#include "tools/result_pages/comparison_page.h"

namespace k3sim {
namespace {

double error_pct(Bytes predicted, Bytes measured) {
  return measured.count() == 0 ? 0 : 100 * (predicted / measured - 1);
}

void add_row(TextTable& table, const char* what, Bytes measured, Bytes other) {
  table.add({what, fmt::format("{:.3f}", measured.gibibytes()), fmt::format("{:.3f}", other.gibibytes()),
             fmt::format("{:+.2f}", error_pct(other, measured))});
}

std::size_t chosen_rank(const StepPrediction& p, int rank) {
  if (rank < 0) return static_cast<std::size_t>(p.summary.worst_memory_rank);
  for (std::size_t i = 0; i < p.memory.size(); ++i)
    if (p.memory[i].rank == rank) return i;
  throw UsageError(fmt::format("--rank {}: the scenario has pipeline ranks 0..{}", rank, p.memory.size() - 1));
}

std::string comparison_json(const ReplayReport& measured, const RankMemory& m) {
  nlohmann::ordered_json j;
  j["rank"] = m.rank;
  j["measured"] = {{"peak_allocated", measured.measured_peak_allocated.count()},
                   {"peak_reserved", measured.measured_peak_reserved.count()}};
  j["predicted"] = {{"peak_allocated", m.allocated.count()}, {"peak_reserved", m.reserved.count()}};
  j["error_pct"] = {{"peak_allocated", error_pct(m.allocated, measured.measured_peak_allocated)},
                    {"peak_reserved", error_pct(m.reserved, measured.measured_peak_reserved)}};
  j["parts"] = {{"weights", m.states.weights.count()},     {"gradients", m.states.gradients.count()},
                {"optimizer", m.states.optimizer.count()}, {"activations", m.activations.count()},
                {"transient", m.transient.count()},        {"staging", m.staging.count()},
                {"outside_allocator", m.outside.count()}};
  return j.dump(2) + "\n";
}

}  // namespace

int replay_memory(const std::string& snapshot, const std::string& folder, CommandContext& context) {
  const ReplayReport report = replay_snapshot(snapshot);
  if (!folder.empty()) {
    OutputFolder out(folder);
    out.add("compare.json", to_json(report) + "\n");
    add_results(out, {{"compare.csv", replay_table(report)}}, replay_page(report, context.command));
    out.commit();
  }
  if (context.json) {
    context.out << to_json(report) << "\n";
    return report.first_difference ? 1 : 0;
  }
  TextTable table({"GiB", "measured", "emulated", "error %"});
  add_row(table, "peak allocated", report.measured_peak_allocated, report.emulated_peak_allocated);
  add_row(table, "peak reserved", report.measured_peak_reserved, report.emulated_peak_reserved);
  context.out << table.to_text(context.colour()) << fmt::format("{} requests replayed; ", report.requests);
  if (report.first_difference)
    context.out << fmt::format("first difference at event {}: measured {}, emulated {}\n",
                               report.first_difference->event, report.first_difference->expected,
                               report.first_difference->got);
  else
    context.out << "every block and segment is the same\n";
  return report.first_difference ? 1 : 0;
}

int compare_memory(const MemoryComparison& c, CommandContext& context) {
  const ReplayReport measured = replay_snapshot(c.snapshot);
  const Scenario scenario = load_scenario(c.scenario, c.set);
  StepOptions options;
  options.allow_assumed = true;
  const StepPrediction p = predict_step(scenario, load_machine(scenario), options);
  const RankMemory& m = p.memory[chosen_rank(p, c.rank)];
  if (!c.out.empty()) {
    OutputFolder out(c.out);
    out.add("compare.json", comparison_json(measured, m));
    add_results(out, {{"compare.csv", memory_comparison_table(measured, m)}},
                memory_comparison_page(measured, m, scenario, context.command));
    out.commit();
  }
  if (context.json) {
    context.out << comparison_json(measured, m);
    return 0;
  }
  TextTable table({"GiB", "measured", "predicted", "error %"});
  add_row(table, "peak allocated", measured.measured_peak_allocated, m.allocated);
  add_row(table, "peak reserved", measured.measured_peak_reserved, m.reserved);
  context.out << fmt::format("pipeline rank {}, peak at {}\n", m.rank, m.peak_action)
              << table.to_text(context.colour());
  return 0;
}

}  // namespace k3sim
