// Published dispatch, combine and replication times, each within 15 %. Sources: k3-facts sections 3.6 to 3.9; hardware
// section 3.5 (DeepEP over SMs, H100).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "models/moe/dispatcher.h"
#include "models/moe/routing.h"

using namespace k3sim;

namespace {

constexpr double kFp8WithScales = 1.0 + 4.0 / 128.0;

DispatchWorkload workload(const RoutingShape& shape, std::int64_t width, double sigma = 0.0) {
  RoutingSpec spec;
  spec.kind = RoutingKind::kLogNormal;
  spec.micro_batch_sigma = sigma;
  DispatchWorkload w;
  w.counts = draw_counts(spec, shape, {});
  w.topk = shape.topk;
  w.width = width;
  return w;
}

DispatchWorkload deepseek(int ranks, int tokens) {
  DispatchWorkload w = workload({.ranks = ranks, .experts = 256, .topk = 8, .tokens_per_rank = tokens}, 7168);
  w.domain_limit = 4;
  w.dispatch_bytes_per_value = kFp8WithScales;
  return w;
}

DispatchResult run(const std::string& name, const DispatchWorkload& w, const DispatchRates& rates, int sms = 0) {
  DispatchPolicy policy;
  policy.sms = sms;
  return find_dispatcher(name).run(w, policy, rates);
}

void check_within(const std::string& what, Time predicted, double published_us, double percent = 15.0) {
  CAPTURE(what);
  const double error = 100.0 * (predicted.microseconds() / published_us - 1.0);
  INFO(what, ": predicted ", predicted.microseconds(), " us, published ", published_us, " us, error % ", error);
  CHECK(std::abs(error) <= percent);
}

}  // namespace

TEST_CASE("moonep on 8 x H200: planner, dispatch, combine and their local kernels") {
  struct Row {
    int tokens;
    double plan, dispatch, combine, dispatch_backward, combine_backward, epilogue, prologue;
  };
  for (const Row& row : {Row{8192, 91, 1722, 1689, 1687, 1702, 155, 202}, Row{1024, 85, 290, 230, 298, 234, 23, 28}}) {
    const DispatchWorkload w =
        workload({.ranks = 8, .experts = 896, .topk = 8, .tokens_per_rank = row.tokens}, 7168, 1.0);
    const DispatchTimes t = run("moonep", w, dispatch_rates("h200_sxm")).time;
    check_within("planner", t.plan, row.plan);
    check_within("dispatch forward", t.dispatch, row.dispatch);
    check_within("combine forward", t.combine, row.combine);
    // The fixed costs belong to the operation, not to the direction: each backward takes its forward's time.
    check_within("dispatch backward", t.dispatch, row.dispatch_backward);
    check_within("combine backward", t.combine, row.combine_backward);
    check_within("epilogue", t.dispatch_local, row.epilogue);
    check_within("prologue", t.combine_local, row.prologue);
  }
}

TEST_CASE("moonep weight prefetch on GB200 over the number of slots") {
  // One projection of 22.02 MB per slot. 2 n equally hot experts of rank 0, nothing for rank 1: n of them move.
  const double published[][2] = {{1, 34.5}, {2, 62.3}, {3, 90.3}, {5, 146.9}, {12, 343.5}, {17, 484.7}, {24, 681.4}};
  for (const auto& [slots, microseconds] : published) {
    const int n = static_cast<int>(slots);
    DispatchWorkload w;
    w.counts = ExpertCounts(2, 2 * 48);
    for (int e = 0; e < 2 * n; ++e) w.counts.at(0, e) = 1000;
    w.topk = 1;
    w.width = 1;
    w.expert = {.width = 22'020'000 / 6, .intermediate = 1};
    const DispatchResult r = run("moonep", w, dispatch_rates("gb200"));
    CAPTURE(n);
    CHECK(r.ranks[0].replicas_sent == n);
    CHECK(r.ranks[1].replication.nvlink_received == Bytes(22'020'000 * n));
    check_within("prefetch", r.time.replicate, microseconds, 3.0);
  }
}

TEST_CASE("deepep v1 on H800: published bandwidths of EP 8 to 64") {
  struct Row {
    int ranks;
    double dispatch_gb, combine_gb;
  };
  const DispatchRates rates = dispatch_rates("h800_sxm");
  for (const Row& row : {Row{8, 153, 158}, Row{16, 43, 43}, Row{32, 58, 57}, Row{64, 51, 50}}) {
    CAPTURE(row.ranks);
    const DispatchTimes t = run("deepep", deepseek(row.ranks, 4096), rates).time;
    // Their bandwidth counts what stays on the own rank (EP 8) or node (beyond).
    const double copies =
        row.ranks == 8 ? expected_distinct(8, 256, 8) : expected_distinct_limited(row.ranks / 8, 4, 256, 8);
    const double values = 4096 * copies * 7168;
    check_within("dispatch", t.dispatch, values * kFp8WithScales / row.dispatch_gb / 1e3);
    check_within("combine", t.combine, values * 2 / row.combine_gb / 1e3);
  }
}

TEST_CASE("deepep v1 on 2 x 8 H200 in BF16 is bound by forwarding over NVLink") {
  DispatchWorkload w = deepseek(16, 4096);
  w.dispatch_bytes_per_value = 2.0;
  const DispatchTimes t = run("deepep", w, dispatch_rates("h200_sxm")).time;
  const double megabytes = 4096 * expected_distinct(2, 256, 8) * 7168 * 2 / 1e6;
  check_within("dispatch", t.dispatch, megabytes / 40.9 * 1e3);
  check_within("combine", t.combine, megabytes / 44.4 * 1e3);
}

TEST_CASE("deepep v2 reaches the NIC with few SMs") {
  struct Row {
    int ranks, sms;
    double dispatch_gb, combine_gb;
  };
  for (const Row& row : {Row{16, 12, 90, 81}, Row{32, 6, 61, 61}}) {
    CAPTURE(row.ranks);
    const DispatchTimes t = run("deepep_v2", deepseek(row.ranks, 8192), dispatch_rates("h100_sxm"), row.sms).time;
    const double values = 8192 * expected_distinct(row.ranks / 8, 256, 8) * 7168;
    check_within("dispatch", t.dispatch, values * kFp8WithScales / row.dispatch_gb / 1e3);
    check_within("combine", t.combine, values * 2 / row.combine_gb / 1e3);
  }
}

TEST_CASE("deepep on H100 within a node over the number of SMs") {
  const double published[][3] = {{4, 2068, 3897}, {8, 1082, 2031}, {12, 754, 1417},
                                 {16, 579, 1086}, {20, 492, 983},  {24, 498, 961}};
  for (const auto& [sms, dispatch, combine] : published) {
    const DispatchTimes t = run("deepep", deepseek(8, 4096), dispatch_rates("h100_sxm"), static_cast<int>(sms)).time;
    check_within("dispatch", t.dispatch, dispatch);
    check_within("combine", t.combine, combine);
  }
}

TEST_CASE("K3 latents over RDMA: one copy per node at 45 GB/s") {
  const double published[][2] = {{16, 1.3}, {32, 3.9}, {64, 8.1}};
  for (const auto& [ranks, milliseconds] : published) {
    const DispatchWorkload w =
        workload({.ranks = static_cast<int>(ranks), .experts = 896, .topk = 16, .tokens_per_rank = 8192}, 3584);
    const DispatchRates rates = dispatch_rates("h200_sxm");
    Bytes most;
    for (const RankDispatch& r : run("moonep_hierarchical", w, rates).ranks)
      most = std::max(most, r.dispatch.rdma_sent);
    check_within("RDMA leg of the dispatch", most / rates.rdma, milliseconds * 1e3, 5.0);
  }
}

TEST_CASE("four replicas of one owner take 0.9 ms over NVLink and 5.3 to 6 ms over RDMA") {
  const Bytes four = replica_weight_bytes(ExpertShape{}) * 4;
  CHECK((four / Bandwidth(300e9)).milliseconds() == doctest::Approx(0.88).epsilon(0.01));
  const double rdma = (four / dispatch_rates("h800_sxm").rdma).milliseconds();
  CHECK((rdma > 5.2 && rdma < 6.0));
}
