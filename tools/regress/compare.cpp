// Source: engine-design section 19; see compare.h.
#include "tools/regress/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace k3sim {
namespace {

constexpr std::size_t kMostParts = 6;

bool is_step_part(const std::string& metric) {
  return metric.ends_with("_s") && !metric_info(metric).primary;
}

bool is_memory(const std::string& metric) {
  return metric.starts_with("peak_") || metric.starts_with("short_by");
}

void keep_largest(std::vector<MovedPart>& parts, std::size_t most = kMostParts) {
  std::stable_sort(parts.begin(), parts.end(), [](const MovedPart& a, const MovedPart& b) {
    return std::fabs(a.actual - a.expected) > std::fabs(b.actual - b.expected);
  });
  if (parts.size() > most) parts.resize(most);
}

const double* part_of(const RankParts& rank, const std::string& name) {
  for (const auto& [part, value] : rank.parts)
    if (part == name) return &value;
  return nullptr;
}

class TargetComparison {
 public:
  TargetComparison(const RegressTarget& target, const Baseline& expected, const Baseline& actual, RegressReport& report)
      : target_(target), old_(expected), new_(actual), report_(report) {}

  void run() {
    if (old_.status != new_.status) status_row();
    for (const Metric& m : new_.metrics)
      if (!old_.find(m.name)) value_row(m.name, std::nullopt, m.value, Category::rows_added, false);
    compare_metrics(true);
    compare_metrics(false);
    compare_rank_memory();
    note_silent_changes();
  }

 private:
  RegressRow row(const std::string& metric, Category category, bool blocking) const {
    RegressRow r;
    r.scenario = target_.name;
    r.metric = metric;
    r.category = category;
    r.blocking = blocking;
    r.file = target_.input;
    return r;
  }

  void status_row() {
    const bool good = new_.status == "ok";
    RegressRow r = row("status", Category::status_change, !good);
    r.expected = old_.status;
    r.actual = new_.status;
    r.reason = good ? old_.reason : new_.reason;
    report_.rows.push_back(r);
  }

  RegressRow& value_row(const std::string& metric, std::optional<double> expected, std::optional<double> actual,
                        Category category, bool blocking) {
    RegressRow r = row(metric, category, blocking);
    if (expected) r.expected = fmt::format("{:.9g}", *expected);
    if (actual) r.actual = fmt::format("{:.9g}", *actual);
    r.expected_value = expected;
    r.actual_value = actual;
    report_.rows.push_back(std::move(r));
    return report_.rows.back();
  }

  // First what is judged, then what explains it.
  void compare_metrics(bool primary) {
    for (const Metric& m : old_.metrics) {
      if (metric_info(m.name).primary != primary) continue;
      report_.checked.emplace_back(target_.name, m.name);
      const Metric* now = new_.find(m.name);
      if (!now) {
        missing_metric(m);
      } else if (!within_tolerance(m, now->value)) {
        primary ? judge(m, now->value) : explain_or_drift(m, now->value);
      }
    }
  }

  // Worked before and gives no number now: a regression where there is a direction.
  void missing_metric(const Metric& m) {
    const bool failed = new_.metrics.empty();
    if (failed && !metric_info(m.name).primary) return;
    value_row(m.name, m.value, std::nullopt, failed ? Category::regression : Category::rows_removed, true).reason =
        failed ? new_.reason : "the metric is gone";
  }

  void judge(const Metric& m, double now) {
    const bool higher = metric_info(m.name).direction == Direction::higher_is_better;
    const bool worse = higher ? now < m.value : now > m.value;
    RegressRow& r = value_row(m.name, m.value, now, worse ? Category::regression : Category::improvement, worse);
    const bool reserved = m.name == "peak_reserved_gib" || m.name == "short_by_gib";
    r.moved = is_memory(m.name) ? moved_on_ranks(reserved ? "peak_allocated_gib" : m.name) : moved_parts();
    (is_memory(m.name) ? memory_moved_ : time_moved_) = true;
  }

  void explain_or_drift(const Metric& m, double now) {
    if (time_moved_ &&
        (is_step_part(m.name) || m.name == "bubble_pct" || m.name == "assumed_pct" || m.name == "hfu_pct"))
      return;
    value_row(m.name, m.value, now, Category::drift, true).moved = moved_on_ranks(m.name);
  }

  // Parts of the mean step, then the ranks that moved most.
  std::vector<MovedPart> moved_parts() const {
    std::vector<MovedPart> parts;
    for (const Metric& m : old_.metrics) {
      const Metric* now = is_step_part(m.name) ? new_.find(m.name) : nullptr;
      if (now && now->value != m.value) parts.push_back({m.name, m.value, now->value});
    }
    keep_largest(parts, kMostParts / 2);
    std::vector<MovedPart> ranks = moved_on_ranks("");
    keep_largest(ranks, kMostParts - parts.size());
    parts.insert(parts.end(), ranks.begin(), ranks.end());
    return parts;
  }

  // Per rank the move of one part; with an empty name of every part that counts time.
  std::vector<MovedPart> moved_on_ranks(const std::string& metric) const {
    std::vector<MovedPart> parts;
    for (const RankParts& before : old_.ranks) {
      const auto after =
          std::find_if(new_.ranks.begin(), new_.ranks.end(), [&](const RankParts& r) { return r.rank == before.rank; });
      if (after == new_.ranks.end()) continue;
      for (const auto& [name, value] : before.parts) {
        if (metric.empty() ? is_memory(name) : name != metric) continue;
        const double* now = part_of(*after, name);
        if (now && *now != value) parts.push_back({fmt::format("rank {} {}", before.rank, name), value, *now});
      }
    }
    keep_largest(parts);
    return parts;
  }

  // The worst rank is a metric; another rank may need more memory while the worst one does not.
  void compare_rank_memory() {
    if (memory_moved_) return;
    for (const char* name : {"peak_allocated_gib", "peak_activations"}) {
      const Metric* tolerance = old_.find(name);
      for (const MovedPart& p : moved_on_ranks(name)) {
        const Metric before{name, p.expected, tolerance ? tolerance->rtol : 0, tolerance ? tolerance->atol : 0};
        if (within_tolerance(before, p.actual)) continue;
        const bool worse = p.actual > p.expected;
        const std::string rank = p.what.substr(5, p.what.find(' ', 5) - 5);
        value_row(fmt::format("{}@rank{}", name, rank), p.expected, p.actual,
                  worse ? Category::regression : Category::improvement, worse);
      }
    }
  }

  void note_silent_changes() {
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < std::min(old_.order.size(), new_.order.size()); ++r)
      if (old_.order[r] != new_.order[r]) ranks.push_back(r);
    if (!ranks.empty())
      report_.notes.push_back(fmt::format("{}: the order of actions changed on rank{} {}", target_.name,
                                          ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", ")));
    const bool comparable = old_.version == new_.version && old_.toolchain == new_.toolchain;
    if (comparable && !old_.fingerprint.empty() && !new_.fingerprint.empty() && old_.fingerprint != new_.fingerprint)
      report_.notes.push_back(fmt::format("{}: the stream of events changed (fingerprint {} -> {})", target_.name,
                                          old_.fingerprint, new_.fingerprint));
  }

  const RegressTarget& target_;
  const Baseline &old_, &new_;
  RegressReport& report_;
  bool time_moved_ = false, memory_moved_ = false;
};

}  // namespace

const char* to_string(Category c) {
  constexpr const char* kNames[] = {"regression",    "improvement", "drift",
                                    "status_change", "rows_added",  "rows_removed"};
  return kNames[static_cast<std::size_t>(c)];
}

double RegressRow::change_pct() const {
  if (!expected_value || !actual_value || *expected_value == 0) return 0;
  return 100 * (*actual_value / *expected_value - 1);
}

double RegressRow::badness() const {
  double score = blocking ? 1e9 : 0;
  if (category == Category::status_change) score += blocking ? 1e8 : 0;
  if (category == Category::regression) score += actual_value ? 1e7 : 5e7;
  return score + std::min(std::fabs(change_pct()), 1e6);
}

bool RegressReport::pass() const {
  return std::none_of(rows.begin(), rows.end(), [](const RegressRow& r) { return r.blocking; });
}

std::size_t RegressReport::count(Category c) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [c](const RegressRow& r) { return r.category == c; }));
}

void compare_target(const RegressTarget& target, const std::optional<Baseline>& expected, const Baseline& actual,
                    RegressReport& report) {
  report.scenarios.push_back(target.name);
  RegressRow r;
  r.scenario = target.name;
  r.metric = "scenario";
  r.file = target.input;
  if (!expected) {
    r.category = Category::rows_added;
    r.actual = actual.status;
    r.reason = actual.reason;
    r.blocking = actual.status != "ok" && actual.status != "does not fit";  // new and already broken
    report.rows.push_back(r);
  } else if (!target.input_exists) {
    r.category = Category::rows_removed;
    r.expected = expected->status;
    r.reason = "the baseline is there, its input is gone";
    r.blocking = true;
    report.rows.push_back(r);
  } else {
    TargetComparison(target, *expected, actual, report).run();
  }
}

void sort_worst_first(RegressReport& report) {
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const RegressRow& a, const RegressRow& b) { return a.badness() > b.badness(); });
}

void keep_tolerances(const Baseline& old, Baseline& fresh) {
  for (Metric& m : fresh.metrics) {
    const Metric* before = old.find(m.name);
    if (!before) continue;
    m.rtol = before->rtol;
    m.atol = before->atol;
  }
}

}  // namespace k3sim
