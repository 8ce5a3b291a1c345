// Source: merge_files.h.
#include "calibrate/fit/merge_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calibrate/fit/data_check.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

constexpr double kShareThatMayDisagree = 0.05;

struct Seen {
  double median_us = 0;
  std::size_t file = 0;
};

struct Disagreement {
  std::string key, text;
  std::size_t file = 0;
};

struct Comparison {
  int common = 0;
  std::vector<Disagreement> disagreements;
};

Comparison compare(const std::vector<MeasurementTable>& tables, const std::vector<std::string>& names) {
  Comparison out;
  std::map<std::string, Seen> first;
  for (std::size_t f = 0; f < tables.size(); ++f)
    for (const Measurement& m : tables[f].rows) {
      const auto [found, is_new] = first.emplace(m.id.key(), Seen{m.median_us, f});
      const Seen& before = found->second;
      if (is_new || before.file == f) continue;  // repeats inside one file are the data check's business
      ++out.common;
      const double low = std::min(before.median_us, m.median_us), high = std::max(before.median_us, m.median_us);
      if (low > 0 && high / low <= kRepeatTolerance) continue;
      out.disagreements.push_back(
          {m.id.key(),
           fmt::format("{} us in {}, {} us in {}", before.median_us, names[before.file], m.median_us, names[f]), f});
    }
  return out;
}

}  // namespace

MergedMeasurements merge_measurements(const std::vector<MeasurementTable>& tables,
                                      const std::vector<std::string>& names) {
  const Comparison c = compare(tables, names);
  const std::size_t n = c.disagreements.size();
  if (n > 1 && static_cast<double>(n) > kShareThatMayDisagree * c.common) {
    std::vector<Problem> problems;
    for (const Disagreement& d : c.disagreements)
      problems.push_back({{names[d.file], 0, 0}, d.key, "measured twice, " + d.text, {}});
    problems.front().hint =
        fmt::format("{} of {} rows in common differ by more than 25 %: fit these files apart", n, c.common);
    throw ConfigError(problems);
  }
  MergedMeasurements out;
  std::set<std::string> dropped;
  for (const Disagreement& d : c.disagreements) {
    if (dropped.insert(d.key).second) out.notes.push_back(fmt::format("{} left out: {}", d.key, d.text));
  }
  for (const MeasurementTable& t : tables)
    for (const Measurement& m : t.rows)
      if (dropped.count(m.id.key()) == 0) out.rows.push_back(m);
  return out;
}

}  // namespace k3sim
