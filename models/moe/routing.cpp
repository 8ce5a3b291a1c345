// Popularity and keyed draws; see the header for the laws.
// Alias table: Walker 1977 in Vose's form. Gamma draws for the Dirichlet: Marsaglia and Tsang 2000 (with the
// alpha < 1 boost). Every draw is keyed by (seed, purpose, layer / micro-batch / rank, index).
// Source: k3-facts section 3.7. Valid for positive popularity.
#include "models/moe/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/rng.h"

namespace k3sim {
namespace {

// Group-limited routing has no closed law: its counts are exact up to so many tokens, and take their probabilities from
// that many beyond (standard error 3 % for an expert that one token in 32 takes).
constexpr std::int64_t kSampledTokens = 32'768;

enum Purpose : std::uint64_t { kLayer = 0x6d6f6501, kMicroBatch, kExpertNoise, kGamma, kToken, kCount };

std::size_t sz(int v) {
  return static_cast<std::size_t>(v);
}

std::uint64_t entity(MicroBatchId id, int rank = 0) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(id.layer)) << 40) ^
         (static_cast<std::uint64_t>(static_cast<std::uint32_t>(id.micro_batch)) << 16) ^
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank));
}

void normalise(std::vector<double>& p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= sum;
}

double gamma_draw(const RandomKey& key, std::uint64_t index, double alpha) {
  const double shape = alpha < 1.0 ? alpha + 1.0 : alpha;
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (std::uint64_t trial = 0;; ++trial) {
    const std::uint64_t n = index * 256 + trial;  // rejection probability is below 5 %
    const double x = random_normal(key, 2 * n);
    const double u = random_uniform(key, 4 * n + 2);
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0.0 || std::log(u) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double boost = alpha < 1.0 ? std::pow(random_uniform(key, 4 * n + 3), 1.0 / alpha) : 1.0;
    return d * v * boost;
  }
}

struct AliasTable {
  std::vector<double> keep;
  std::vector<std::int32_t> other;
};

AliasTable make_alias(const std::vector<double>& p) {
  const std::size_t n = p.size();
  AliasTable table{std::vector<double>(n, 1.0), std::vector<std::int32_t>(n, 0)};
  std::vector<double> scaled(n);
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] = p[i] * static_cast<double>(n);
    (scaled[i] < 1.0 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::size_t s = small.back(), l = large.back();
    small.pop_back();
    table.keep[s] = scaled[s];
    table.other[s] = static_cast<std::int32_t>(l);
    scaled[l] -= 1.0 - scaled[s];
    if (scaled[l] < 1.0) {
      large.pop_back();
      small.push_back(l);
    }
  }
  return table;
}

// Random words of one token: a counter hashed with the token's own key, cheaper than four full mixes per draw.
class TokenStream {
 public:
  TokenStream(const RandomKey& key, std::uint64_t token) : base_(random_bits(key, token)) {}
  double next() {
    base_ += 0x9e3779b97f4a7c15ULL;
    return (static_cast<double>(Fingerprint::mix(base_) >> 11) + 0.5) * 0x1.0p-53;
  }

 private:
  std::uint64_t base_;
};

// Quantiles of the standard normal at the middles of 2^15 equal steps of (0, 1/2); the upper half mirrors them. The
// largest one is 4.17; counts are rounded to whole tokens, far coarser than the steps.
// Rational approximation of P. J. Acklam (2003), relative error 1.2e-9.
constexpr int kQuantileBits = 15;

double lower_quantile(double p) {
  if (p < 0.02425) {
    const double q = std::sqrt(-2.0 * std::log(p));
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
              2.549732539343734e+00) *
                 q +
             4.374664141464968e+00) *
                q +
            2.938163982698783e+00) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
             3.754408661907416e+00) *
                q +
            1.0);
  }
  const double q = p - 0.5, r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
            1.383577518672690e+02) *
               r -
           3.066479806614716e+01) *
              r +
          2.506628277459239e+00) *
         q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
            6.680131188771972e+01) *
               r -
           1.328068155288572e+01) *
              r +
          1.0);
}

const std::vector<double>& quantiles() {
  static const std::vector<double> table = [] {
    std::vector<double> t(std::size_t{1} << kQuantileBits);
    for (std::size_t i = 0; i < t.size(); ++i)
      t[i] = lower_quantile((static_cast<double>(i) + 0.5) / (2.0 * static_cast<double>(t.size())));
    return t;
  }();
  return table;
}

// Standard normals, four from every hashed word: 15 bits choose a quantile, one the sign.
class NormalStream {
 public:
  explicit NormalStream(const RandomKey& key) : base_(random_bits(key, 0)), table_(quantiles()) {}
  double next() {
    if (left_ == 0) {
      base_ += 0x9e3779b97f4a7c15ULL;
      word_ = Fingerprint::mix(base_);
      left_ = 4;
    }
    --left_;
    const double size = table_[word_ & ((std::uint64_t{1} << kQuantileBits) - 1)];
    const bool mirrored = (word_ >> kQuantileBits & 1) != 0;
    word_ >>= kQuantileBits + 1;
    return mirrored ? -size : size;
  }

 private:
  std::uint64_t base_, word_ = 0;
  int left_ = 0;
  const std::vector<double>& table_;
};

// Remaining draws of a token whose popularity mass is nearly used up: scan the experts that are left.
void draw_by_scan(const std::vector<double>& p, const std::vector<std::int64_t>& taken, std::int64_t token,
                  TokenStream& stream, std::int32_t& out) {
  double mass = 0.0;
  for (std::size_t e = 0; e < p.size(); ++e) mass += taken[e] == token ? 0.0 : p[e];
  double left = stream.next() * mass;
  for (std::size_t e = 0; e < p.size(); ++e) {
    if (taken[e] == token) continue;
    out = static_cast<std::int32_t>(e);
    left -= p[e];
    if (left <= 0.0) return;
  }
}

void draw_plain(const std::vector<double>& p, const RoutingShape& shape, const RandomKey& key,
                std::vector<std::int32_t>& ids) {
  constexpr int kMaxRepeats = 64;  // then scan: same law, bounded work
  const AliasTable table = make_alias(p);
  const double n = static_cast<double>(p.size());
  std::vector<std::int64_t> taken(p.size(), -1);
  std::size_t next = 0;
  for (std::int64_t token = 0; token < shape.tokens_per_rank; ++token) {
    TokenStream stream(key, static_cast<std::uint64_t>(token));
    for (int k = 0; k < shape.topk; ++k) {
      std::int32_t expert = -1;
      for (int trial = 0; trial < kMaxRepeats && expert < 0; ++trial) {
        const double u = stream.next() * n;
        const auto column = std::min(static_cast<std::size_t>(u), p.size() - 1);
        const std::int32_t e = u - static_cast<double>(column) < table.keep[column] ? static_cast<std::int32_t>(column)
                                                                                    : table.other[column];
        if (taken[static_cast<std::size_t>(e)] != token) expert = e;
      }
      if (expert < 0) draw_by_scan(p, taken, token, stream, expert);
      taken[static_cast<std::size_t>(expert)] = token;
      ids[next++] = expert;
    }
  }
}

// DeepSeek-V3: a group's score is the sum of its two best expert scores; only the best `topk_groups` groups count.
// Scores are sigmoid(log p + Gumbel noise), so that without the limit the law would be the plain one.
void draw_group_limited(const std::vector<double>& p, const RoutingSpec& spec, const RoutingShape& shape,
                        const RandomKey& key, std::vector<std::int32_t>& ids) {
  const std::size_t groups = sz(spec.expert_groups), per_group = p.size() / groups;
  std::vector<double> score(p.size()), group_score(groups);
  std::vector<std::int32_t> order(groups), candidates;
  for (int token = 0; token < shape.tokens_per_rank; ++token) {
    TokenStream stream(key, static_cast<std::uint64_t>(token));
    for (std::size_t g = 0; g < groups; ++g) {
      double first = -1.0, second = -1.0;
      for (std::size_t e = g * per_group; e < (g + 1) * per_group; ++e) {
        // sigmoid(log w - log(-log u)) = w / (w - log u), w = popularity relative to the mean
        const double weight = p[e] * static_cast<double>(p.size());
        score[e] = weight / (weight - std::log(stream.next()));
        second = std::max(second, std::min(first, score[e]));
        first = std::max(first, score[e]);
      }
      group_score[g] = first + std::max(second, 0.0);
    }
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return group_score[static_cast<std::size_t>(a)] > group_score[static_cast<std::size_t>(b)];
    });
    candidates.clear();
    for (int g = 0; g < spec.topk_groups; ++g) {
      const auto base = static_cast<std::int32_t>(static_cast<std::size_t>(order[sz(g)]) * per_group);
      for (std::size_t i = 0; i < per_group; ++i) candidates.push_back(base + static_cast<std::int32_t>(i));
    }
    std::partial_sort(candidates.begin(), candidates.begin() + shape.topk, candidates.end(), [&](auto a, auto b) {
      const double sa = score[static_cast<std::size_t>(a)], sb = score[static_cast<std::size_t>(b)];
      return sa != sb ? sa > sb : a < b;
    });
    std::copy_n(candidates.begin(), shape.topk, ids.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk);
  }
}

bool group_limited(const RoutingSpec& spec) {
  return spec.expert_groups > 1 && spec.topk_groups < spec.expert_groups;
}

std::vector<std::int32_t> draw_from(const std::vector<double>& p, const RoutingSpec& spec, const RoutingShape& shape,
                                    MicroBatchId id, int rank) {
  CS_CHECK(shape.topk >= 1 && shape.topk <= shape.experts, "top-{} of {} experts", shape.topk, shape.experts);
  std::vector<std::int32_t> ids(sz(shape.tokens_per_rank) * sz(shape.topk));
  const RandomKey key{spec.seed, kToken, entity(id, rank)};
  if (group_limited(spec)) {
    CS_CHECK(shape.experts % spec.expert_groups == 0 && spec.topk_groups > 0 &&
                 shape.topk <= shape.experts / spec.expert_groups * spec.topk_groups,
             "top-{} within {} of {} groups of {} experts", shape.topk, spec.topk_groups, spec.expert_groups,
             shape.experts);
    draw_group_limited(p, spec, shape, key, ids);
  } else {
    draw_plain(p, shape, key, ids);
  }
  return ids;
}

// Adds or removes single tokens, expert after expert, until the row sums to `target`.
void repair_sum(std::int32_t* row, int experts, std::int64_t target, std::int32_t limit, std::size_t start) {
  std::int64_t missing = target - std::accumulate(row, row + experts, std::int64_t{0});
  for (std::size_t i = start; missing != 0; ++i) {
    std::int32_t& count = row[i % sz(experts)];
    if (missing > 0 && count < limit) {
      ++count;
      --missing;
    } else if (missing < 0 && count > 0) {
      --count;
      ++missing;
    }
  }
}

}  // namespace

std::vector<double> expert_popularity(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id) {
  std::vector<double> p(sz(shape.experts), 1.0);
  if (spec.kind == RoutingKind::kUniform) {
    normalise(p);
    return p;
  }
  const RandomKey layer{spec.seed, kLayer, entity({id.layer, 0})}, batch{spec.seed, kMicroBatch, entity(id)};
  const RandomKey noise{spec.seed, kExpertNoise, entity(id)}, gamma{spec.seed, kGamma, entity(id)};
  const int epn = std::max(1, shape.experts / shape.ranks);
  for (int e = 0; e < shape.experts; ++e) {
    const auto who = static_cast<std::uint64_t>(spec.correlated_with_rank ? e / epn : e);
    if (spec.kind == RoutingKind::kDirichlet) {
      p[sz(e)] = std::max(gamma_draw(gamma, static_cast<std::uint64_t>(e), spec.dirichlet_alpha), 1e-12);
      continue;
    }
    double log_p = spec.layer_sigma * random_normal(layer, who) + spec.micro_batch_sigma * random_normal(batch, who);
    if (spec.correlated_with_rank) log_p += spec.expert_sigma * random_normal(noise, static_cast<std::uint64_t>(e));
    p[sz(e)] = std::exp(log_p);
  }
  normalise(p);
  return p;
}

std::vector<std::int32_t> draw_expert_ids(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id,
                                          int rank) {
  return draw_from(expert_popularity(spec, shape, id), spec, shape, id, rank);
}

ExpertCounts draw_counts_exact(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id) {
  ExpertCounts counts(shape.ranks, shape.experts);
  const std::vector<double> p = expert_popularity(spec, shape, id);
  for (int r = 0; r < shape.ranks; ++r) {
    for (const std::int32_t e : draw_from(p, spec, shape, id, r)) ++counts.at(r, e);
  }
  return counts;
}

// The number of experts taken is concave in T and below topk at T = topk: Newton's steps from there rise to the root
// and never pass it.
std::vector<double> inclusion_probability(const std::vector<double>& popularity, int topk) {
  double t = topk;
  for (int i = 0; i < 200; ++i) {
    double taken = 0.0, slope = 0.0;
    for (const double p : popularity) {
      const double missed = std::exp(-p * t);
      taken += 1.0 - missed;
      slope += p * missed;
    }
    const double step = (topk - taken) / slope;
    if (!(step > 1e-12 * t) || t > 1e18) break;
    t += step;
  }
  std::vector<double> pi(popularity.size());
  for (std::size_t e = 0; e < pi.size(); ++e) pi[e] = -std::expm1(-popularity[e] * t);
  return pi;
}

// Share of tokens that take each expert, from the tokens of one source rank's stream.
static std::vector<double> sampled_inclusion(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id) {
  RoutingShape sample = shape;
  sample.tokens_per_rank = static_cast<int>(kSampledTokens);
  std::vector<double> pi(sz(shape.experts), 0.0);
  for (const std::int32_t e : draw_from(expert_popularity(spec, shape, id), spec, sample, id, 0))
    pi[static_cast<std::size_t>(e)] += 1.0 / static_cast<double>(kSampledTokens);
  return pi;
}

ExpertCounts draw_counts(const RoutingSpec& spec, const RoutingShape& shape, MicroBatchId id) {
  CS_CHECK(shape.topk >= 1 && shape.topk <= shape.experts, "top-{} of {} experts", shape.topk, shape.experts);
  std::vector<double> pi;
  if (group_limited(spec)) {
    if (std::int64_t{shape.ranks} * shape.tokens_per_rank <= kSampledTokens) return draw_counts_exact(spec, shape, id);
    pi = sampled_inclusion(spec, shape, id);
  } else {
    pi = inclusion_probability(expert_popularity(spec, shape, id), shape.topk);
  }
  const double tokens = shape.tokens_per_rank;
  std::vector<double> deviation(pi.size());
  for (std::size_t e = 0; e < pi.size(); ++e) deviation[e] = std::sqrt(tokens * pi[e] * (1.0 - pi[e]));
  ExpertCounts counts(shape.ranks, shape.experts);
  for (int r = 0; r < shape.ranks; ++r) {
    const RandomKey key{spec.seed, kCount, entity(id, r)};
    NormalStream noise(key);  // one stream per source rank, experts in order
    std::int32_t* row = counts.tokens.data() + counts.index(r, 0);
    for (int e = 0; e < shape.experts; ++e) {
      const double q = pi[sz(e)];
      const double x = tokens * q + deviation[sz(e)] * noise.next();
      row[e] = static_cast<std::int32_t>(std::lround(std::clamp(x, 0.0, tokens)));
    }
    repair_sum(
        row, shape.experts, std::int64_t{shape.tokens_per_rank} * shape.topk, shape.tokens_per_rank,
        static_cast<std::size_t>(random_below(key, ~std::uint64_t{0}, static_cast<std::uint64_t>(shape.experts))));
  }
  return counts;
}

}  // namespace k3sim
