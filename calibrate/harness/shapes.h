// Which shapes to time: the matrices of Kimi K3, DeepSeek-V3 and Llama-3 70B/8B, a log-random design that covers the
// space between them, and token counts per expert for grouped GEMM (uniform or Zipf).
//   log-random: log2 M in [6, 15), log2 N in [7, 14.5), log2 K in [7, 14.5), rounded to multiples of 8, rejected above
//   a work limit; draws are keyed, so the design is the same on every machine and resuming finds the same rows.
//   Zipf: share of expert g proportional to 1 / (g + 1), largest remainder, so that counts add up exactly.
// Source: k3-facts.md section 1.1-1.2 (shapes), engine-design.md section 14.5 (fit by shape family).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace k3sim {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;  // y[m,n] = x[m,k] * w[n,k]^T
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  // Each operand and the result once, at `element` bytes in and `result` bytes out.
  double bytes(double element, double result) const;
  std::string params() const;  // "M=..;N=..;K=.."
};

// The (N, K) pairs of the linear layers, without repeats, in a fixed order.
std::vector<GemmShape> model_gemm_shapes(const std::vector<std::int64_t>& tokens);
std::vector<GemmShape> log_random_gemm_shapes(int count, std::uint64_t seed, double max_flops);

enum class Skew { kUniform, kZipf };
// Rows of each of `groups` experts; they add up to `rows`.
std::vector<int> group_counts(int groups, int rows, Skew skew);
const char* skew_name(Skew skew);

}  // namespace k3sim
