// What `regress record` stores and `regress check` compares: one baseline per scenario folder or bare schedule CSV.
//
//   status   "ok", or in one word why there is no result: "deadlock", "invalid", "error"
//   metrics  name, value, tolerance; the direction that is worse is fixed per metric name (metric_direction)
//   ranks    per pipeline rank the parts that explain a change (never compared on their own, except peak memory)
//   order    per rank a hash of its row of actions, so that a reordered rank can be named
// Values are rounded to 9 significant digits before they are stored or compared, so that the last bits of a library do
// not matter; on top of that the comparison is exact unless the file gives a metric an rtol or atol.
// Source: engine-design section 19; product-spec sections 2 and 3 (expected.json).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace k3sim {

struct Metric {
  std::string name;
  double value = 0;
  double rtol = 0, atol = 0;
};

struct RankParts {
  int rank = 0;
  std::vector<std::pair<std::string, double>> parts;
};

struct Baseline {
  std::string scenario;  // name relative to the checked folder
  std::string kind;      // "scenario" or "schedule"
  std::string status = "ok";
  std::string reason;  // of a status other than ok, with rank and index
  std::vector<Metric> metrics;
  std::vector<RankParts> ranks;
  std::vector<std::string> order;
  std::string fingerprint;  // of the event stream; meaningful for the same version and toolchain only
  std::string version, toolchain, digest;

  const Metric* find(const std::string& name) const;
};

enum class Direction { lower_is_better, higher_is_better, neutral };

struct MetricInfo {
  Direction direction = Direction::neutral;
  bool primary = false;  // what a pull request is judged by; other metrics explain it
};
MetricInfo metric_info(const std::string& name);

double rounded_value(double v);  // 9 significant digits
bool within_tolerance(const Metric& expected, double actual);

std::string baseline_to_json(const Baseline& baseline);
// Throws ConfigError when the text is no baseline.
Baseline baseline_from_json(const std::string& text, const std::string& file);

}  // namespace k3sim
