// Baseline against new result -> rows, each with one category:
//   regression     a primary metric (step time, throughput, memory) got worse
//   improvement    it got better: reported, never blocking
//   drift          a metric without a better or worse direction moved, or one that only explains moved alone: the
//                  prediction changed although the answer did not. Blocks until the baseline is recorded anew.
//   status_change  ok, does not fit, deadlock, invalid, error, missing; blocks unless the new status is ok
//   rows_added     a scenario or metric without baseline: reported
//   rows_removed   a baseline without scenario or metric: blocks, because it would hide a regression
// A metric that only explains (bubble, exposed communication, ...) makes no row of its own when a primary one moved: it
// is part of that row's explanation, together with the ranks that moved most.
// Source: engine-design section 19 (categories as in AIConfigurator's prediction gate, drift made blocking).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/regress/baseline.h"
#include "tools/regress/targets.h"

namespace k3sim {

enum class Category { regression, improvement, drift, status_change, rows_added, rows_removed };
const char* to_string(Category c);

struct MovedPart {
  std::string what;  // "bubble_s", "rank 3 compute_s"
  double expected = 0, actual = 0;
};

struct RegressRow {
  std::string scenario, metric;
  std::string expected, actual;                        // as printed; empty: none
  std::optional<double> expected_value, actual_value;  // numbers, where they are numbers
  Category category = Category::drift;
  bool blocking = false;
  std::string file;              // input of the scenario, for annotations
  std::string reason;            // of a status
  std::vector<MovedPart> moved;  // largest first
  double badness() const;        // order of the report: larger is worse
  double change_pct() const;     // 0 when there is no number
};

struct RegressReport {
  std::vector<RegressRow> rows;    // worst first
  std::vector<std::string> notes;  // not rows: order or event stream changed with equal results
  std::vector<std::string> scenarios;
  std::vector<std::pair<std::string, std::string>> checked;  // (scenario, metric) that were compared
  bool pass() const;
  std::size_t count(Category c) const;
};

// Appends the rows of one target. `expected` is empty when there is no baseline.
void compare_target(const RegressTarget& target, const std::optional<Baseline>& expected, const Baseline& actual,
                    RegressReport& report);
void sort_worst_first(RegressReport& report);

// A new baseline keeps the tolerances that were written into the old one by hand.
void keep_tolerances(const Baseline& old, Baseline& fresh);

}  // namespace k3sim
