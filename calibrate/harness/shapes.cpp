// Shape design of the GEMM and grouped GEMM families.
// Source: k3-facts.md section 1.1 (K3, DeepSeek-V3); Llama 3 model card (8B: 4096/14336, 70B: 8192/28672).
#include "calibrate/harness/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/rng.h"

namespace k3sim {

namespace {

struct Layer {
  std::int64_t n, k;
};

// K3 KDA/MLA projections, gates, latent and shared FFN, dense FFN part; DeepSeek-V3 MLA and FFN; Llama-3 8B and 70B.
constexpr Layer kLayers[] = {
    {12288, 7168}, {7168, 12288}, {128, 7168},   {12288, 128},  {896, 7168},   {1536, 7168},  {576, 7168},
    {12288, 1536}, {24576, 512},  {18432, 1536}, {3584, 7168},  {7168, 3584},  {6144, 7168},  {7168, 6144},
    {6144, 3584},  {3584, 3072},  {24576, 1536}, {7168, 16384}, {18432, 7168}, {7168, 18432}, {4096, 7168},
    {7168, 2048},  {6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {10240, 8192}, {8192, 8192},
    {57344, 8192}, {8192, 28672}, {8192, 7168},  {7168, 8192},  {3072, 3584},  {7168, 7168},
};

std::int64_t log_between(const RandomKey& key, std::uint64_t index, double low, double high) {
  const double exponent = low + (high - low) * random_uniform(key, index);
  return std::max<std::int64_t>(8, static_cast<std::int64_t>(std::llround(std::exp2(exponent) / 8)) * 8);
}

}  // namespace

double GemmShape::bytes(double element, double result) const {
  const double md = static_cast<double>(m), nd = static_cast<double>(n), kd = static_cast<double>(k);
  return element * (md * kd + nd * kd) + result * md * nd;
}

std::string GemmShape::params() const {
  return fmt::format("M={};N={};K={}", m, n, k);
}

std::vector<GemmShape> model_gemm_shapes(const std::vector<std::int64_t>& tokens) {
  std::vector<GemmShape> out;
  for (const auto m : tokens)
    for (const auto& layer : kLayers) out.push_back({m, layer.n, layer.k});
  return out;
}

std::vector<GemmShape> log_random_gemm_shapes(int count, std::uint64_t seed, double max_flops) {
  const RandomKey key{seed, /*purpose=*/0x6765'6d6d, /*entity=*/0};
  std::vector<GemmShape> out;
  for (std::uint64_t i = 0; out.size() < static_cast<std::size_t>(count); ++i) {
    CS_CHECK(i < 1'000'000, "no shape fits below {} flops", max_flops);
    const GemmShape s{log_between(key, 3 * i, 6, 15), log_between(key, 3 * i + 1, 7, 14.5),
                      log_between(key, 3 * i + 2, 7, 14.5)};
    if (s.flops() <= max_flops) out.push_back(s);
  }
  return out;
}

std::vector<int> group_counts(int groups, int rows, Skew skew) {
  CS_CHECK(groups > 0 && rows >= 0, "{} groups, {} rows", groups, rows);
  std::vector<double> share(static_cast<std::size_t>(groups), 1.0);
  if (skew == Skew::kZipf)
    for (std::size_t g = 0; g < share.size(); ++g) share[g] = 1.0 / static_cast<double>(g + 1);
  const double total = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<int> counts(share.size());
  int given = 0;
  for (std::size_t g = 0; g < share.size(); ++g)
    given += counts[g] = static_cast<int>(std::floor(share[g] / total * rows));
  for (std::size_t g = 0; given < rows; g = (g + 1) % counts.size(), ++given) ++counts[g];
  return counts;
}

const char* skew_name(Skew skew) {
  return skew == Skew::kZipf ? "zipf" : "uniform";
}

}  // namespace k3sim
