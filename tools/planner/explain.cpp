#include "tools/planner/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace k3sim {

namespace {

struct Part {
  const char* name;
  Time RankBreakdown::*field;
};
constexpr Part kParts[] = {
    {"compute", &RankBreakdown::compute},       {"recompute", &RankBreakdown::recompute},
    {"exposed tp", &RankBreakdown::tp},         {"exposed cp", &RankBreakdown::cp},
    {"exposed ep", &RankBreakdown::ep},         {"exposed pp", &RankBreakdown::pp},
    {"exposed dp", &RankBreakdown::dp},         {"offload stall", &RankBreakdown::offload},
    {"bubble", &RankBreakdown::bubble},         {"host", &RankBreakdown::host},
    {"optimizer", &RankBreakdown::optimizer},   {"end of step", &RankBreakdown::wait},
    {"vision encoder", &RankBreakdown::vision},
};

std::string changed_settings(const SearchSpace& space, const Ranked& a, const Ranked& b) {
  const std::vector<int> x = space.choice(a.index), y = space.choice(b.index);
  std::vector<std::string> parts;
  if (a.policy_searched != b.policy_searched)
    parts.emplace_back(a.policy_searched ? "the activation policy searched" : "a preset activation policy");
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    const SpaceAxis& axis = space.axes()[i];
    parts.push_back(fmt::format("{} {} instead of {}", axis.key, axis.values[static_cast<std::size_t>(x[i])].text,
                                axis.values[static_cast<std::size_t>(y[i])].text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<PartChange> part_changes(const StepSummary& first, const StepSummary& second) {
  std::vector<PartChange> out;
  for (const Part& p : kParts) {
    const double change = (second.mean.*p.field).seconds() - (first.mean.*p.field).seconds();
    if (std::abs(change) > 1e-9) out.push_back({p.name, change});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const PartChange& a, const PartChange& b) { return std::abs(a.seconds) > std::abs(b.seconds); });
  return out;
}

std::string explain_winner(const SearchSpace& space, const Ranked& winner, const Ranked& other) {
  const StepSummary &a = winner.evaluation.prediction.summary, &b = other.evaluation.prediction.summary;
  std::string text = fmt::format("with {}: step {:.3f} s against {:.3f} s", changed_settings(space, winner, other),
                                 a.step.seconds(), b.step.seconds());
  std::vector<std::string> parts;
  for (const PartChange& c : part_changes(a, b)) {
    if (parts.size() == 4) break;
    parts.push_back(fmt::format("{} {:+.3f} s", c.part, -c.seconds));
  }
  if (!parts.empty()) text += fmt::format(" ({})", fmt::join(parts, ", "));
  if (a.peak_reserved != b.peak_reserved)
    text += fmt::format("; memory {:+.1f} GiB", a.peak_reserved.gibibytes() - b.peak_reserved.gibibytes());
  if (too_close(a, b)) text += "; too close to call: the difference is within the error of the comparison";
  return text;
}

std::string layout_text(const SearchSpace& space, std::int64_t index) {
  std::vector<std::string> parts;
  const std::vector<int> choice = space.choice(index);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const SpaceAxis& axis = space.axes()[i];
    if (axis.values.size() < 2) continue;
    const std::string& text = axis.values[static_cast<std::size_t>(choice[i])].text;
    const std::size_t dot = axis.key.rfind('.');
    parts.push_back(axis.key == "variants" ? text
                                           : axis.key.substr(dot == std::string::npos ? 0 : dot + 1) + "=" + text);
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string layout_text(const SearchSpace& space, const Ranked& ranked) {
  return layout_text(space, ranked.index) + (ranked.policy_searched ? " but policy=auto" : "");
}

std::string counts_text(const SearchResult& r) {
  std::string out = fmt::format("{} configurations, {} could fit, {} evaluated, {} simulated kernel by kernel\n", r.raw,
                                r.candidates, r.evaluated, r.simulated);
  for (int i = 1; i < kReasons; ++i) {
    const std::int64_t n = r.counts[static_cast<std::size_t>(i)];
    if (n > 0)
      out += fmt::format("  {:>9}  {:<13} {}\n", n, to_string(static_cast<Reason>(i)), explain(static_cast<Reason>(i)));
  }
  return out;
}

CsvTable plan_table(const SearchSpace& space, const SearchResult& result) {
  std::vector<CsvColumn> columns{
      {"rank", "1", "place in the ranking; empty: does not fit", "search"},
      {"id", "text", "digest of the settings", "scenario"},
      {"reason", "text", "ok, or why it is not in the ranking", "search"},
      {"pareto", "text", "true: nothing is better in time, memory headroom, GPUs and robustness to costs at once"},
      {"policy_searched", "text", "true: the activation policy was searched per stage instead", "search"},
      {"bound_s", "s", "lower bound of the step time that ordered the search"},
      {"step_low_s", "s", "step time with all costs 5 % lower"},
      {"step_high_s", "s", "step time with all costs 5 % higher"}};
  for (const std::vector<CsvColumn>& more : {axis_columns(space), summary_columns()})
    columns.insert(columns.end(), more.begin(), more.end());
  CsvTable out(std::move(columns));
  int rank = 0;
  for (const std::vector<Ranked>* list : {&result.ranked, &result.misfits})
    for (const Ranked& r : *list) {
      const bool fits = list == &result.ranked;
      std::vector<std::string> cells{fits ? fmt::format("{}", ++rank) : "",
                                     space.id(r.index),
                                     to_string(r.evaluation.reason),
                                     r.pareto ? "true" : "false",
                                     r.policy_searched ? "true" : "false",
                                     csv_number(r.bound_seconds),
                                     csv_number(r.step_low),
                                     csv_number(r.step_high)};
      const std::vector<int> choice = space.choice(r.index);
      for (std::size_t a = 0; a < choice.size(); ++a)
        cells.push_back(space.axes()[a].values[static_cast<std::size_t>(choice[a])].text);
      const std::vector<std::string> numbers =
          r.evaluation.simulated() ? summary_cells(r.evaluation.scenario, r.evaluation.prediction.summary)
                                   : std::vector<std::string>(summary_columns().size());
      cells.insert(cells.end(), numbers.begin(), numbers.end());
      out.add(std::move(cells));
    }
  return out;
}

CsvTable candidates_table(const SearchSpace& space, const SearchResult& result) {
  std::vector<CsvColumn> columns{{"id", "text", "digest of the settings", "scenario"},
                                 {"reason", "text", "ok, or the rule that removed the configuration", "search"}};
  const std::vector<CsvColumn> axes = axis_columns(space);
  columns.insert(columns.end(), axes.begin(), axes.end());
  CsvTable out(std::move(columns));
  for (std::int64_t i = 0; i < space.size(); ++i) {
    std::vector<std::string> cells{space.id(i), to_string(result.reasons[static_cast<std::size_t>(i)])};
    const std::vector<int> choice = space.choice(i);
    for (std::size_t a = 0; a < choice.size(); ++a)
      cells.push_back(space.axes()[a].values[static_cast<std::size_t>(choice[a])].text);
    out.add(std::move(cells));
  }
  return out;
}

}  // namespace k3sim
