// How many replicas the planner needs: published simulation results reproduced within their sampling error.
// Source: k3-facts section 3.7 (E = 896, K = 16). Published are single draws (independent popularity) or means over a
// few seeds (correlated). With N seeds here and n there a value agrees when
//   |published - mean| <= 3 std sqrt(1/n + 1/N) + rounding of the published digits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/moe/moonep_planner.h"
#include "models/moe/moonep_rows.h"
#include "models/moe/routing.h"

using namespace k3sim;

namespace {

constexpr int kSeeds = 16;

struct Series {
  std::vector<double> values;
  double mean() const {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0;
    for (const double v : values) sum += (v - mean()) * (v - mean());
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
};

struct Statistics {
  Series max_violation, hottest, replicas_mean, replicas_max, sent_max, moved_pct;
};

Statistics over_seeds(RoutingSpec spec, const RoutingShape& shape) {
  Statistics s;
  for (int i = 0; i < kSeeds; ++i) {
    spec.seed = static_cast<std::uint64_t>(1 + i);
    const ExpertCounts counts = draw_counts(spec, shape, {});
    const MoonepPlan plan = plan_moonep(counts);
    const std::vector<std::int64_t> load = counts.per_owner_rank();
    double received = 0;
    for (const std::int32_t n : plan.replicas_received) received += n;
    s.max_violation.values.push_back(max_violation(counts.per_expert()));
    s.hottest.values.push_back(static_cast<double>(*std::max_element(load.begin(), load.end())) /
                               static_cast<double>(plan.cap[0]));
    s.replicas_mean.values.push_back(received / shape.ranks);
    s.replicas_max.values.push_back(*std::max_element(plan.replicas_received.begin(), plan.replicas_received.end()));
    s.sent_max.values.push_back(*std::max_element(plan.replicas_sent.begin(), plan.replicas_sent.end()));
    s.moved_pct.values.push_back(100.0 * static_cast<double>(plan.moved_rows()) / static_cast<double>(counts.total()));
  }
  return s;
}

void check_agrees(const std::string& what, const Series& ours, double published, int published_seeds, double rounding) {
  CAPTURE(what);
  CAPTURE(ours.mean());
  CAPTURE(published);
  const double spread = ours.deviation() * std::sqrt(1.0 / published_seeds + 1.0 / kSeeds);
  CHECK(std::abs(published - ours.mean()) <= 3.0 * spread + rounding);
}

RoutingSpec log_normal(double sigma, bool correlated) {
  RoutingSpec spec;
  spec.kind = RoutingKind::kLogNormal;
  spec.micro_batch_sigma = sigma;
  spec.correlated_with_rank = correlated;
  return spec;
}

// Distinct ranks per token before and after planning, from exact draws.
std::pair<double, double> distinct_ranks(const RoutingSpec& spec, const RoutingShape& shape) {
  std::vector<std::vector<std::int32_t>> ids, before, after;
  ExpertCounts counts(shape.ranks, shape.experts);
  for (int r = 0; r < shape.ranks; ++r) {
    ids.push_back(draw_expert_ids(spec, shape, {}, r));
    for (const std::int32_t e : ids.back()) ++counts.at(r, e);
  }
  const MoonepPlan home = plan_moonep(counts, {.tolerance = 4.0}), plan = plan_moonep(counts);
  REQUIRE(home.moved_rows() == 0);
  for (int r = 0; r < shape.ranks; ++r) {
    before.push_back(address_rows(home, counts, r, ids[static_cast<std::size_t>(r)], shape.topk));
    after.push_back(address_rows(plan, counts, r, ids[static_cast<std::size_t>(r)], shape.topk));
  }
  return {mean_distinct_ranks(before, shape.topk), mean_distinct_ranks(after, shape.topk)};
}

}  // namespace

TEST_CASE("planner statistics: independent popularity") {
  struct Published {
    int ranks, tokens;
    double sigma, max_violation, hottest, replicas_mean, replicas_max, sent_max, moved_pct;
  };
  const Published table[] = {
      {8, 8192, 0.0, 0.08, 1.002, 0.88, 1, 3, 0.1},   {8, 8192, 0.3, 1.45, 1.023, 1.12, 2, 4, 0.9},
      {8, 8192, 1.0, 12.0, 1.091, 1.12, 3, 3, 3.7},   {16, 8192, 0.3, 1.42, 1.064, 1.06, 2, 4, 1.4},
      {16, 8192, 1.0, 12.0, 1.209, 1.25, 2, 6, 6.3},  {32, 4096, 0.1, 0.38, 1.046, 0.94, 1, 4, 0.6},
      {32, 4096, 0.3, 1.42, 1.140, 1.00, 2, 5, 2.0},  {32, 4096, 1.0, 12.0, 1.636, 1.12, 2, 7, 8.8},
      {64, 4096, 0.1, 0.36, 1.047, 0.91, 1, 4, 1.1},  {64, 4096, 0.3, 1.43, 1.146, 0.98, 2, 5, 3.2},
      {64, 4096, 1.0, 11.9, 1.741, 1.02, 2, 6, 12.0}, {64, 4096, 2.0, 44.3, 3.577, 1.02, 2, 8, 30.8},
  };
  for (const Published& p : table) {
    CAPTURE(p.ranks);
    CAPTURE(p.sigma);
    const Statistics s = over_seeds(log_normal(p.sigma, false),
                                    {.ranks = p.ranks, .experts = 896, .topk = 16, .tokens_per_rank = p.tokens});
    check_agrees("MaxVio", s.max_violation, p.max_violation, 1, 0.05);
    check_agrees("hottest rank / cap", s.hottest, p.hottest, 1, 0.001);
    check_agrees("replicas, mean", s.replicas_mean, p.replicas_mean, 1, 0.01);
    check_agrees("replicas, largest", s.replicas_max, p.replicas_max, 1, 0.5);
    check_agrees("largest sender", s.sent_max, p.sent_max, 1, 0.5);
    check_agrees("rows moved %", s.moved_pct, p.moved_pct, 1, 0.05);
  }
}

TEST_CASE("planner statistics: popularity correlated with the owning rank") {
  struct Published {
    int ranks, tokens;
    double sigma;
    int seeds;
    double hottest, replicas_mean, replicas_max, sent_max, moved_pct;
  };
  const Published table[] = {
      {8, 8192, 0.1, 12, 1.16, 4.2, 12, 16, 4.5}, {8, 8192, 0.3, 12, 1.51, 9.8, 26, 38, 13},
      {8, 8192, 0.5, 12, 1.91, 13.0, 32, 51, 21}, {16, 8192, 0.3, 8, 1.63, 5.5, 15, 22, 14},
      {32, 4096, 0.3, 6, 1.71, 2.9, 8, 13, 13},   {64, 4096, 0.1, 5, 1.28, 1.2, 3, 5, 4.7},
      {64, 4096, 0.3, 5, 1.91, 1.8, 4, 9, 13},    {64, 4096, 0.5, 5, 2.73, 2.2, 5, 12, 21},
  };
  for (const Published& p : table) {
    CAPTURE(p.ranks);
    CAPTURE(p.sigma);
    const Statistics s = over_seeds(log_normal(p.sigma, true),
                                    {.ranks = p.ranks, .experts = 896, .topk = 16, .tokens_per_rank = p.tokens});
    check_agrees("hottest rank / cap", s.hottest, p.hottest, p.seeds, 0.005);
    check_agrees("replicas, mean", s.replicas_mean, p.replicas_mean, p.seeds, 0.05);
    check_agrees("replicas, largest", s.replicas_max, p.replicas_max, p.seeds, 0.5);
    check_agrees("largest sender", s.sent_max, p.sent_max, p.seeds, 0.5);
    check_agrees("rows moved %", s.moved_pct, p.moved_pct, p.seeds, 0.5);
  }
}

TEST_CASE("planner statistics: replication keeps distinct destinations at the uniform value") {
  struct Published {
    int ranks, tokens;
    double sigma;
    bool correlated;
    double before, after, tolerance_before, tolerance_after;
  };
  const Published table[] = {
      {8, 8192, 0.3, false, 7.07, 7.07, 0.02, 0.02},    {16, 8192, 1.0, false, 10.38, 10.41, 0.06, 0.03},
      {32, 4096, 1.0, false, 12.83, 12.92, 0.06, 0.03}, {64, 4096, 2.0, false, 14.50, 14.77, 0.3, 0.06},
      {8, 8192, 0.5, true, 6.59, 7.08, 0.5, 0.01},      {64, 4096, 0.5, true, 13.97, 14.39, 0.15, 0.02},
  };
  for (const Published& p : table) {
    CAPTURE(p.ranks);
    CAPTURE(p.sigma);
    double before = 0.0, after = 0.0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      RoutingSpec spec = log_normal(p.sigma, p.correlated);
      spec.seed = seed;
      const auto [b, a] =
          distinct_ranks(spec, {.ranks = p.ranks, .experts = 896, .topk = 16, .tokens_per_rank = p.tokens});
      before += b / 3.0;
      after += a / 3.0;
    }
    CHECK(std::abs(before - p.before) <= p.tolerance_before);
    CHECK(std::abs(after - p.after) <= p.tolerance_after);
  }
}
