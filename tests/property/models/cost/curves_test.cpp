// What must hold for any kernel on any calibrated GPU: no free lunch, no loss from less work, skew never helps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "models/cost/gpu_profile.h"
#include "models/cost/group_sizes.h"

using namespace k3sim;

namespace {

const char* const kGpus[] = {"h200_sxm", "h100_sxm", "h800_sxm", "h20", "a100_sxm"};

// Deterministic log-uniform whole numbers, multiples of 8.
class Shapes {
 public:
  explicit Shapes(std::uint64_t seed) : state_(seed) {}
  std::int64_t next(double low, double high) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double u = static_cast<double>(state_ >> 11) * 0x1p-53;
    return std::max<std::int64_t>(8, static_cast<std::int64_t>(low * std::pow(high / low, u)) / 8 * 8);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

TEST_CASE("no kernel runs above the peak of its operands or streams faster than 1.1 of memory") {
  for (const char* gpu : kGpus) {
    CAPTURE(gpu);
    const GpuProfile p = load_gpu_profile(gpu);
    const auto model = make_cost_model(p);
    Shapes shapes(7);
    for (int i = 0; i < 200; ++i) {
      const std::int64_t m = shapes.next(64, 65536), n = shapes.next(64, 32768), k = shapes.next(64, 32768);
      const Pass pass = i % 3 == 0 ? Pass::forward : i % 3 == 1 ? Pass::input_grad : Pass::weight_grad;
      const Kernel g = gemm_kernel("g", pass, Dtype::bf16, m, n, k);
      const double t = model->time(g).time.seconds();
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      CHECK(g.flops.value() / t < p.limits.bf16_dense.value());
      const Kernel e = grouped_gemm_kernel("e", pass, Dtype::bf16, 1 + i % 56, m, n, k);
      CHECK(e.flops.value() / model->time(e).time.seconds() < p.limits.bf16_dense.value());
      const Kernel c = memory_kernel("c", pass, static_cast<MemoryClass>(i % kMemoryClasses), Bytes(m * n * 4));
      // Gathered rows come from L2 more than once.
      CHECK(c.bytes.as_double() / model->time(c).time.seconds() < 1.1 * p.limits.hbm.value());
    }
  }
}

TEST_CASE("twice the rows never take less time, and at most little more than twice") {
  const auto model = make_cost_model(load_gpu_profile("h200_sxm"));
  Shapes shapes(11);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t m = shapes.next(256, 32768), n = shapes.next(128, 20480), k = shapes.next(128, 20480);
    const double one = model->time(gemm_kernel("g", Pass::forward, Dtype::bf16, m, n, k)).time.seconds();
    const double two = model->time(gemm_kernel("g", Pass::forward, Dtype::bf16, 2 * m, n, k)).time.seconds();
    CHECK(two >= 0.999 * one);
    CHECK(two <= 2.35 * one);  // waves round up, clocks fall
  }
}

TEST_CASE("skewed experts are never faster than equal ones, weight gradients hardly slower") {
  const auto model = make_cost_model(load_gpu_profile("h200_sxm"));
  for (const std::int64_t groups : {4, 7, 28, 56, 112}) {
    for (const std::int64_t mean : {64, 128, 512, 2048}) {
      Kernel equal = grouped_gemm_kernel("e", Pass::forward, Dtype::bf16, groups, groups * mean, 6144, 3584);
      Kernel skewed = equal;
      skewed.largest_group = zipf_largest(groups, groups * mean);
      CHECK(model->time(skewed).time.seconds() >= 0.93 * model->time(equal).time.seconds());
    }
  }
}

TEST_CASE("group sizes keep the number of rows and the size of the fullest group") {
  for (const std::int64_t groups : {2, 8, 28, 112}) {
    for (const double share : {0.02, 0.1, 0.3, 0.7}) {
      const std::int64_t rows = 100000;
      const auto largest = static_cast<std::int64_t>(share * static_cast<double>(rows));
      const std::vector<double> sizes = group_sizes(groups, rows, largest);
      CHECK(std::accumulate(sizes.begin(), sizes.end(), 0.0) == doctest::Approx(static_cast<double>(rows)));
      const double expected =
          std::max(static_cast<double>(largest), static_cast<double>(rows) / static_cast<double>(groups));
      CHECK(sizes.front() == doctest::Approx(expected).epsilon(0.01));
    }
  }
}

TEST_CASE("one chain per SM sets the time of FlashKDA: shorter sequences help, more heads are nearly free") {
  const auto model = make_cost_model(load_gpu_profile("h200_sxm"), {.kda = "flash_kda", .attention = {}});
  const auto ms = [&](std::int64_t sequences, std::int64_t tokens, std::int64_t heads) {
    return model->time(kda_kernel("k", Pass::forward, sequences, tokens, heads, 128)).time.milliseconds();
  };
  CHECK(ms(4, 4096, 8) < 0.4 * ms(1, 16384, 8));
  CHECK(ms(1, 8192, 96) < 2.0 * ms(1, 8192, 8));
  CHECK(ms(4, 4096, 96) == doctest::Approx(2.495).epsilon(0.05));  // k3-facts 4.5
}

TEST_CASE("FP8 products are faster than BF16 ones when large, FP32 ones far slower") {
  const auto model = make_cost_model(load_gpu_profile("h200_sxm"));
  const auto us = [&](Dtype d) {
    return model->time(gemm_kernel("g", Pass::forward, d, 8192, 8192, 8192)).time.microseconds();
  };
  CHECK(us(Dtype::fp8) < 0.65 * us(Dtype::bf16));
  CHECK(us(Dtype::fp8_block) > us(Dtype::fp8));
  CHECK(us(Dtype::fp32) > 8 * us(Dtype::bf16));
}
