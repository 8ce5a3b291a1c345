// Source: see schedule_file.h.
#include "models/schedule/schedule_file.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "models/schedule/csv.h"
#include "models/schedule/lint.h"
#include "models/schedule/lower.h"

namespace k3sim {

Schedule read_valid_schedule(const std::string& file) {
  const CsvSchedule parsed = read_schedule_csv(file);
  const LintReport report = lint_schedule(parsed.schedule);
  std::vector<Problem> problems;
  for (const ScheduleProblem& p : report.problems) {
    Problem problem;
    problem.place = {file, p.rank + 1, 0};
    problem.what = p.index < 0 ? p.what : fmt::format("action {}: {}", p.index, p.what);
    problems.push_back(std::move(problem));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return compute_only(parsed.schedule);
}

Schedule read_schedule_for(const std::string& file, const ScheduleSpec& expected) {
  Schedule schedule = read_valid_schedule(file);
  std::vector<Problem> problems;
  auto compare = [&](const char* what, int found, int wanted) {
    if (found == wanted) return;
    Problem problem;
    problem.place.file = file;
    problem.what = fmt::format("has {} {}, but the scenario has {}", found, what, wanted);
    problems.push_back(std::move(problem));
  };
  compare("pipeline ranks (rows)", schedule.ranks, expected.ranks);
  compare("stages", schedule.stages, expected.ranks * expected.chunks);
  compare("micro-batches", schedule.microbatches, expected.microbatches);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return schedule;
}

}  // namespace k3sim
