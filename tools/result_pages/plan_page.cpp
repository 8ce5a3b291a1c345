#include "tools/result_pages/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/planner/explain.h"
#include "tools/result_pages/space_explorer.h"

namespace k3sim {

namespace {

std::string answer(const SearchSpace& space, const SearchResult& r, const ResultRows& rows) {
  if (r.ranked.empty()) return fmt::format("None of {} configurations fits", r.raw);
  const Ranked& best = r.ranked.front();
  std::string out =
      fmt::format("Best of {} configurations: {}: {}; {:.2f} to {:.2f} s with all costs 5 % lower or higher", r.raw,
                  layout_text(space, best), row_answer(rows, 0), best.step_low, best.step_high);
  if (r.ranked.size() > 1 && too_close(best.evaluation.prediction.summary, r.ranked[1].evaluation.prediction.summary))
    out += "; too close to the second to call";
  return out;
}

// Why the first beats the second, part by part of the step.
void add_duel(HtmlPage& page, const SearchSpace& space, const SearchResult& r) {
  if (r.ranked.size() < 2) return;
  const StepSummary &a = r.ranked[0].evaluation.prediction.summary, &b = r.ranked[1].evaluation.prediction.summary;
  PageDeltas d;
  d.unit = "s";
  d.first = "second minus first";
  d.less = "the second spends less";
  d.more = "the second spends more";
  d.table = {"duel",
             "What the second layout spends more (+) or less (-) than the first, mean over pipeline ranks",
             "prediction",
             {{"part", "part of the step", "", "where the time goes", true},
              {"change_s", "difference", "s", "second minus first"}},
             {}};
  for (const PartChange& c : part_changes(a, b)) {
    if (std::abs(c.seconds) < 1e-6) continue;
    d.rows.push_back({c.part, c.seconds});
    d.table.rows.push_back({c.part, csv_number(c.seconds)});
  }
  page.note("Why the first beats the second", {explain_winner(space, r.ranked[0], r.ranked[1])});
  page.deltas("", d);
}

void add_counts(HtmlPage& page, const SearchResult& r) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (int i = 0; i < kReasons; ++i)
    counts.emplace_back(to_string(static_cast<Reason>(i)), r.counts[static_cast<std::size_t>(i)]);
  PageTable t = reasons_table(counts, r.raw);
  t.caption = fmt::format(
      "{} configurations, {} could fit, {} evaluated, {} simulated kernel by kernel; the others by the rule "
      "that removed them",
      r.raw, r.candidates, r.evaluated, r.simulated);
  page.table("What the rules removed", t);
}

}  // namespace

HtmlPage plan_page(const SearchSpace& space, const SearchResult& r, const std::string& command) {
  const CsvTable table = plan_table(space, r);
  const ResultRows rows{table.columns(), table.rows()};
  HtmlPage page("Plan for " + space_name(space), answer(space, r, rows));
  if (!r.ranked.empty()) page.figures("The best layout", row_figures(rows, 0));
  if (!table.rows().empty()) page.explore("Layouts simulated kernel by kernel", space_explorer(space, rows, "plans"));
  add_duel(page, space, r);
  add_counts(page, r);
  page.note(
      "Assumptions and provenance",
      {"Candidates are ordered by a lower bound of their step time that never exceeds the simulation; those whose "
       "bound cannot enter the best are not evaluated. The finalists are simulated as `k3sim run` does.",
       "Robustness: the step time with all costs 5 % lower and higher. The Pareto column says which layouts no "
       "other beats in time, memory headroom and GPUs at once; the line in the chart follows the two chosen axes."});
  add_space_reproduction(page, space, command, "A chosen row above shows the command that runs it alone. ");
  if (!r.ranked.empty()) page.note("The best layout as a scenario", {}, r.ranked.front().scenario_text);
  return page;
}

namespace {

std::string fit_answer(const std::vector<FitAnswer>& answers) {
  std::string out;
  for (const FitAnswer& a : answers) {
    out += out.empty() ? "" : "; ";
    if (a.nodes == 0) {
      out += a.gpu + ": nothing fits";
      continue;
    }
    double least = a.capacity.gibibytes();
    for (const RankMemory& m : a.memory)
      least = std::min(least, a.capacity.gibibytes() - (m.reserved + m.outside).gibibytes());
    out += fmt::format(
        "{}: at least {} node{} ({} GPUs), {:.1f} of {:.1f} GiB free on the fullest stage; what binds: {}", a.gpu,
        a.nodes, a.nodes == 1 ? "" : "s", a.scenario.cluster.gpus(), least, a.capacity.gibibytes(), a.binding);
  }
  return out;
}

PageTable margin_table(const FitAnswer& a) {
  PageTable t{"margin_" + a.gpu,
              fmt::format("Memory of every pipeline stage on {} node{}, {:.1f} GiB per GPU; {}", a.nodes,
                          a.nodes == 1 ? "" : "s", a.capacity.gibibytes(), a.layout),
              "prediction",
              {{"stage", "pipeline stage", "1", "", false, false, "scenario"},
               {"used_gib", "used", "GiB", "peak held by the process", false, true},
               {"margin_gib", "margin", "GiB", "what is left"},
               {"peak_action", "peak at", "", "action of the schedule at which memory peaks", true}},
              {}};
  for (const RankMemory& m : a.memory) {
    const double used = (m.reserved + m.outside).gibibytes();
    t.rows.push_back(
        {fmt::format("{}", m.rank), csv_number(used), csv_number(a.capacity.gibibytes() - used), m.peak_action});
  }
  return t;
}

PageTable knob_table(const FitAnswer& a) {
  PageTable t{"knobs_" + a.gpu,
              "What would free memory; first what frees the binding term, cheapest first",
              "prediction",
              {{"knob", "knob", "", "the setting", true},
               {"frees_gib", "frees", "GiB", "on the fullest stage", false, true},
               {"frees_binding_gib", "of " + a.binding, "GiB", "of the term that binds"},
               {"step_change_pct", "step time", "%", "change of the time per sequence"},
               {"nodes", "nodes then", "1", "fewest nodes on which this layout then fits"}},
              {}};
  for (const KnobEffect& k : a.knobs)
    t.rows.push_back({k.name, csv_number(k.freed_gib), csv_number(k.freed_binding_gib), csv_number(k.step_change_pct),
                      fmt::format("{}", k.nodes)});
  return t;
}

// Rows: GPU type and micro-batch; columns: sequence length; cells: nodes.
PageHeat frontier_heat(const std::vector<FrontierPoint>& points) {
  PageHeat h{"frontier",
             "Fewest nodes on which a layout of the space fits; empty: none does",
             "prediction",
             "nodes",
             "GPU and micro-batch",
             "sequence length in tokens",
             {},
             {},
             {}};
  const auto place = [](std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    names.push_back(name);
    return names.size() - 1;
  };
  for (const FrontierPoint& p : points) {
    const std::size_t row = place(h.rows, fmt::format("{}, {}", p.gpu, p.micro_batch)),
                      column = place(h.columns, fmt::format("{}", p.sequence));
    h.values.resize(std::max(h.values.size(), row + 1));
    for (std::vector<double>& v : h.values) v.resize(h.columns.size(), std::nan(""));
    h.values[row][column] = p.nodes > 0 ? p.nodes : std::nan("");
  }
  for (std::vector<double>& v : h.values) v.resize(h.columns.size(), std::nan(""));
  return h;
}

}  // namespace

HtmlPage fit_page(const SearchSpace& space, const std::vector<FitAnswer>& answers,
                  const std::vector<FrontierPoint>& frontier, const std::string& command) {
  HtmlPage page("Fewest nodes for " + space_name(space), fit_answer(answers));
  for (const FitAnswer& a : answers) {
    if (a.nodes == 0) continue;
    const std::string head = answers.size() > 1 ? " (" + a.gpu + ")" : "";
    page.figures(
        "The answer in numbers" + head,
        {{"nodes", "fewest nodes", fmt::format("{}", a.nodes), "nodes", "prediction"},
         {"gpus", "GPUs in them", fmt::format("{}", a.scenario.cluster.gpus()), "GPUs", "prediction"},
         {"capacity_gib", "memory of one GPU", csv_number(a.capacity.gibibytes()), "GiB", "profile"},
         {"binding_gib", "largest term: " + a.binding, csv_number(a.binding_gib), "GiB", "prediction, fullest stage"}});
    page.table("Margin of every stage" + head, margin_table(a));
    if (!a.knobs.empty()) page.table("What would free memory" + head, knob_table(a));
  }
  if (!frontier.empty()) {
    page.heat("Nodes against sequence length and micro-batch", {frontier_heat(frontier)});
    page.table("", page_table("frontier_rows", "One row per GPU type, length and micro-batch", "prediction",
                              fit_frontier_table(frontier)));
  }
  page.note(
      "Assumptions and provenance",
      {"The batch is set to what every layout can split, since memory depends on the micro-batches in flight only. "
       "Peaks come from the emulated allocator, with CUDA context and communicators."});
  add_space_reproduction(page, space, command);
  return page;
}

}  // namespace k3sim
