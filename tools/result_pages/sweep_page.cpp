#include "tools/result_pages/sweep_page.h"

#include <fmt/format.h>

#include <map>

#include "tools/planner/reasons.h"
#include "tools/result_pages/space_explorer.h"

namespace k3sim {

namespace {

struct SweepCounts {
  std::map<std::string, std::int64_t> by_reason;
  std::int64_t predicted = 0, fitting = 0;
  std::ptrdiff_t best = -1;  // row with the least step time among those that fit
};

SweepCounts count(const ResultRows& rows) {
  SweepCounts c;
  double least = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    ++c.by_reason[rows.text(i, "reason")];
    if (rows.text(i, "status") != "predicted") continue;
    ++c.predicted;
    if (rows.text(i, "fits") != "true") continue;
    ++c.fitting;
    const double step = rows.number(i, "step_time_s");
    if (c.best >= 0 && step >= least) continue;
    c.best = static_cast<std::ptrdiff_t>(i);
    least = step;
  }
  return c;
}

std::string answer(const SearchSpace& space, const ResultRows& rows, const SweepCounts& c) {
  std::string out = fmt::format("{} configurations, {} predicted, {} fit", rows.rows.size(), c.predicted, c.fitting);
  if (c.best < 0) return out;
  const auto best = static_cast<std::size_t>(c.best);
  return fmt::format("Fastest that fits: {}: {} ({})", settings_text(space, rows, best), row_answer(rows, best), out);
}

}  // namespace

HtmlPage sweep_page(const SearchSpace& space, const std::vector<CsvColumn>& columns, const CsvData& csv,
                    const std::string& command) {
  const ResultRows rows{columns, csv.rows};
  const SweepCounts c = count(rows);
  HtmlPage page("Sweep of " + space_name(space), answer(space, rows, c));
  if (c.best >= 0) page.figures("The fastest that fits", row_figures(rows, static_cast<std::size_t>(c.best)));
  PageExplorer e = space_explorer(space, rows, "results");
  e.sort = "step_time_s";
  page.explore("All configurations", e);
  std::vector<std::pair<std::string, std::int64_t>> reasons;
  for (int i = 0; i < kReasons; ++i)
    if (const auto found = c.by_reason.find(to_string(static_cast<Reason>(i))); found != c.by_reason.end())
      reasons.push_back(*found);
  page.table("What became of all", reasons_table(reasons, static_cast<std::int64_t>(rows.rows.size())));
  page.note("Assumptions and provenance",
            {"Every row is what `k3sim run` gives for that configuration. The error bar is the 95th percentile of the "
             "step time from the residuals of the kernel fits.",
             "The Pareto front holds only configurations that fit. Sources of columns: settings come from the space, "
             "memory of one GPU and origin of costs from the hardware profile, the rest is predicted."});
  add_space_reproduction(page, space, command, "A chosen row above shows the command that runs it alone. ");
  return page;
}

}  // namespace k3sim
