// Shape design: coverage, determinism, exact counts; reasons for skipping.
#include "calibrate/harness/shapes.h"
#include "calibrate/harness/availability.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

using namespace k3sim;

TEST_CASE("shapes: flops and bytes are those of the shipped measurement of the same shape") {
  const GemmShape s{72, 136, 264};
  CHECK(s.params() == "M=72;N=136;K=264");
  CHECK(s.flops() == 5170176);
  CHECK(s.bytes(2, 2) == 129408);
}

TEST_CASE("shapes: the K3 projections are in the model design, once each") {
  const auto shapes = model_gemm_shapes({4096});
  std::set<std::string> names;
  for (const auto& s : shapes) CHECK(names.insert(s.params()).second);
  for (const char* k3 :
       {"M=4096;N=12288;K=7168", "M=4096;N=3584;K=7168", "M=4096;N=896;K=7168", "M=4096;N=12288;K=1536"})
    CHECK(names.count(k3) == 1);
}

TEST_CASE("shapes: the log-random design is the same every time, aligned, and spreads over three decades of M") {
  const auto a = log_random_gemm_shapes(60, 1, 2e12), b = log_random_gemm_shapes(60, 1, 2e12);
  REQUIRE(a.size() == 60);
  std::int64_t smallest = 1 << 30, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].params() == b[i].params());
    CHECK(a[i].m % 8 + a[i].n % 8 + a[i].k % 8 == 0);
    CHECK(a[i].flops() <= 2e12);
    smallest = std::min(smallest, a[i].m);
    largest = std::max(largest, a[i].m);
  }
  CHECK(smallest < 200);
  CHECK(largest > 10000);
}

TEST_CASE("shapes: group counts add up exactly; Zipf gives the first expert the most") {
  for (const int groups : {1, 4, 7, 112})
    for (const int rows : {0, 5, 1000, 8191})
      for (const Skew skew : {Skew::kUniform, Skew::kZipf}) {
        const auto counts = group_counts(groups, rows, skew);
        CHECK(std::accumulate(counts.begin(), counts.end(), 0) == rows);
        CHECK(*std::max_element(counts.begin(), counts.end()) == counts[0]);
      }
  const auto uniform = group_counts(7, 1000, Skew::kUniform);
  CHECK(uniform.front() - uniform.back() <= 1);
}

TEST_CASE("availability: the reason names what is needed and what is there") {
  const MachineFacts one{.gpus = 1,
                         .compute_capability = 80,
                         .free_memory_gib = 30,
                         .peer_access = false,
                         .nccl_problem = "libnccl.so.2: cannot open"};
  CHECK(skip_reason({}, one).empty());
  CHECK(skip_reason({.gpus = 2}, one) == "needs 2 GPUs, 1 in use");
  CHECK(skip_reason({.compute_capability = 90}, one) == "needs compute capability 9.0, this GPU has 8.0");
  const std::string both = skip_reason({.memory_gib = 60, .nccl = true}, one);
  CHECK(both.find("60.0 GiB") != std::string::npos);
  CHECK(both.find("libnccl.so.2: cannot open") != std::string::npos);
}
