// Routing draws: exact laws against enumeration, keys against order, the fast counts against exact draws.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "models/moe/routing.h"

using namespace k3sim;

namespace {

RoutingSpec log_normal(double sigma) {
  RoutingSpec spec;
  spec.kind = RoutingKind::kLogNormal;
  spec.micro_batch_sigma = sigma;
  return spec;
}

}  // namespace

TEST_CASE("routing: a token never takes an expert twice and takes them in proportion to popularity") {
  const RoutingShape shape{.ranks = 1, .experts = 3, .topk = 2, .tokens_per_rank = 200'000};
  const RoutingSpec spec = log_normal(1.0);
  const std::vector<double> p = expert_popularity(spec, shape, {});
  const std::vector<std::int32_t> ids = draw_expert_ids(spec, shape, {}, 0);
  double seen[3][3] = {};
  for (std::size_t i = 0; i < ids.size(); i += 2) seen[ids[i]][ids[i + 1]] += 1.0 / shape.tokens_per_rank;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      const double law = a == b ? 0.0 : p[a] * p[b] / (1.0 - p[a]);  // successive draws without replacement
      CHECK(seen[a][b] == doctest::Approx(law).epsilon(0.02));
    }
  }
}

TEST_CASE("routing: all experts of a tiny layer are taken even when one holds nearly all popularity") {
  RoutingSpec spec = log_normal(12.0);
  const RoutingShape shape{.ranks = 1, .experts = 6, .topk = 6, .tokens_per_rank = 50};
  const std::vector<std::int32_t> ids = draw_expert_ids(spec, shape, {}, 0);
  for (std::size_t i = 0; i < ids.size(); i += 6) {
    CHECK(std::set<std::int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                 ids.begin() + static_cast<std::ptrdiff_t>(i) + 6)
              .size() == 6);
  }
}

TEST_CASE("routing: draws depend on the key only") {
  const RoutingShape shape{.ranks = 4, .experts = 32, .topk = 4, .tokens_per_rank = 64};
  const RoutingSpec spec = log_normal(0.5);
  const std::vector<std::int32_t> late = draw_expert_ids(spec, shape, {3, 1}, 2);
  draw_expert_ids(spec, shape, {0, 0}, 0);
  CHECK(draw_expert_ids(spec, shape, {3, 1}, 2) == late);
  CHECK(draw_expert_ids(spec, shape, {3, 2}, 2) != late);
  CHECK(draw_expert_ids(spec, shape, {2, 1}, 2) != late);
  CHECK(draw_expert_ids(spec, shape, {3, 1}, 1) != late);
  RoutingShape longer = shape;
  longer.tokens_per_rank = 65;  // one more token changes no earlier one
  std::vector<std::int32_t> more = draw_expert_ids(spec, longer, {3, 1}, 2);
  more.resize(late.size());
  CHECK(more == late);
}

TEST_CASE("routing: layer popularity lasts over micro-batches, micro-batch popularity does not") {
  const RoutingShape shape{.ranks = 2, .experts = 16, .topk = 2, .tokens_per_rank = 8};
  RoutingSpec lasting;
  lasting.kind = RoutingKind::kLogNormal;
  lasting.layer_sigma = 0.7;
  CHECK(expert_popularity(lasting, shape, {5, 0}) == expert_popularity(lasting, shape, {5, 9}));
  CHECK(expert_popularity(lasting, shape, {5, 0}) != expert_popularity(lasting, shape, {6, 0}));
  CHECK(expert_popularity(log_normal(0.7), shape, {5, 0}) != expert_popularity(log_normal(0.7), shape, {5, 9}));
}

TEST_CASE("routing: correlated popularity heats whole ranks") {
  const RoutingShape shape{.ranks = 8, .experts = 896, .topk = 16, .tokens_per_rank = 1024};
  RoutingSpec spec = log_normal(0.5);
  spec.correlated_with_rank = true;
  spec.expert_sigma = 0.0;
  const std::vector<double> p = expert_popularity(spec, shape, {});
  for (int e = 0; e < 896; ++e) CHECK(p[static_cast<std::size_t>(e)] == p[static_cast<std::size_t>(e / 112 * 112)]);
  CHECK(p[0] != p[112]);
}

TEST_CASE("routing: Dirichlet popularity has the moments of its alpha") {
  RoutingSpec spec;
  spec.kind = RoutingKind::kDirichlet;
  for (const double alpha : {0.3, 4.0}) {
    spec.dirichlet_alpha = alpha;
    const RoutingShape shape{.ranks = 1, .experts = 64, .topk = 1, .tokens_per_rank = 1};
    double squares = 0.0;
    constexpr int kDraws = 400;
    for (int i = 0; i < kDraws; ++i) {
      for (const double p : expert_popularity(spec, shape, {0, i})) squares += p * p / (64.0 * kDraws);
    }
    CHECK(squares == doctest::Approx((alpha + 1.0) / (64.0 * (64.0 * alpha + 1.0))).epsilon(0.05));
  }
}

TEST_CASE("routing: fast counts have the mean and spread of exact draws") {
  const RoutingShape shape{.ranks = 16, .experts = 64, .topk = 8, .tokens_per_rank = 512};
  const RoutingSpec spec = log_normal(0.8);
  const std::vector<double> pi = inclusion_probability(expert_popularity(spec, shape, {}), shape.topk);
  CHECK(std::accumulate(pi.begin(), pi.end(), 0.0) == doctest::Approx(8.0));
  const ExpertCounts fast = draw_counts(spec, shape, {}), exact = draw_counts_exact(spec, shape, {});
  const std::vector<std::int64_t> a = fast.per_expert(), b = exact.per_expert();
  for (std::size_t e = 0; e < 64; ++e) {
    const double deviation = std::sqrt(16.0 * 512.0 * pi[e] * (1.0 - pi[e]));
    CHECK(std::abs(static_cast<double>(a[e] - b[e])) <= 5.0 * deviation + 0.02 * static_cast<double>(b[e]));
  }
  for (const std::int64_t rows : fast.per_source_rank()) CHECK(rows == 512 * 8);
  for (const std::int32_t n : fast.tokens) CHECK((n >= 0 && n <= 512));
}

TEST_CASE("routing: group-limited tokens stay within their groups") {
  RoutingSpec spec = log_normal(0.2);
  spec.expert_groups = 8;
  spec.topk_groups = 4;
  const RoutingShape shape{.ranks = 8, .experts = 256, .topk = 8, .tokens_per_rank = 2000};
  const std::vector<std::int32_t> ids = draw_expert_ids(spec, shape, {}, 3);
  double distinct = 0.0;
  for (std::size_t i = 0; i < ids.size(); i += 8) {
    std::set<std::int32_t> groups, experts;
    for (std::size_t k = i; k < i + 8; ++k) {
      groups.insert(ids[k] / 32);
      experts.insert(ids[k]);
    }
    REQUIRE(groups.size() <= 4);
    REQUIRE(experts.size() == 8);
    distinct += static_cast<double>(groups.size()) / shape.tokens_per_rank;
  }
  CHECK(distinct > 3.4);  // uniform choice within four groups would give 3.61; best-two scores pull it up a little
  CHECK(distinct < 4.0);
}

TEST_CASE("routing: MaxVio is the excess of the hottest expert over the mean") {
  CHECK(max_violation({10, 10, 10, 10}) == 0.0);
  CHECK(max_violation({40, 0, 0, 0}) == 3.0);
  CHECK(max_violation({0, 0}) == 0.0);
}
