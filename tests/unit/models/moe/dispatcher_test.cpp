// Dispatchers against each other: conservation, memory, balance, and the published shape over MaxVio.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "models/moe/dispatcher.h"
#include "models/moe/grouped_rows.h"
#include "models/moe/routing.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

RoutingSpec log_normal(double sigma, bool correlated = false) {
  RoutingSpec spec;
  spec.kind = RoutingKind::kLogNormal;
  spec.micro_batch_sigma = sigma;
  spec.correlated_with_rank = correlated;
  return spec;
}

DispatchWorkload k3(int ranks, const RoutingSpec& spec, int tokens = 4096) {
  DispatchWorkload w;
  w.counts = draw_counts(spec, {.ranks = ranks, .experts = 896, .topk = 16, .tokens_per_rank = tokens}, {});
  w.topk = 16;
  w.width = 3584;
  return w;
}

DispatchResult run(const std::string& name, const DispatchWorkload& w, const DispatchPolicy& policy = {}) {
  return find_dispatcher(name).run(w, policy, dispatch_rates("h200_sxm"));
}

}  // namespace

TEST_CASE("dispatchers: what is sent is received, and all rows are computed") {
  for (const int ranks : {8, 16, 64}) {
    const DispatchWorkload w = k3(ranks, log_normal(0.5, true));
    for (const Dispatcher& d : dispatchers()) {
      CAPTURE(d.name);
      const DispatchResult r = d.run(w, {}, dispatch_rates("h200_sxm"));
      REQUIRE(r.ranks.size() == static_cast<std::size_t>(ranks));
      Bytes sent, received;
      std::int64_t rows = 0, padded = 0;
      int copies_sent = 0, copies_received = 0;
      for (const RankDispatch& rank : r.ranks) {
        for (const LinkBytes* b : {&rank.dispatch, &rank.combine, &rank.replication}) {
          sent += b->nvlink_sent + b->rdma_sent;
          received += b->nvlink_received + b->rdma_received;
        }
        rows += rank.rows;
        padded += rank.padded_rows;
        copies_sent += rank.replicas_sent;
        copies_received += rank.replicas_received;
        CHECK(rank.buffer > Bytes(0));
      }
      CHECK(std::abs(sent.count() - received.count()) <= 8 * ranks);  // every figure is rounded up to a byte
      if (d.name != "alltoall_drop") CHECK(rows == w.counts.total());
      CHECK(padded >= rows);
      if (d.name != "eplb") CHECK(copies_sent == copies_received);
      CHECK(r.time.dispatch > Time());
      CHECK(r.time.combine > Time());
    }
  }
}

TEST_CASE("moonep: fixed rows, no host synchronisation, S K rows of buffer against R S K copy-free") {
  const DispatchWorkload w = k3(64, log_normal(1.0), 8192);
  const DispatchResult moonep = run("moonep", w), copy_free = run("copy_free", w), deepep = run("deepep", w);
  for (const RankDispatch& r : moonep.ranks) CHECK(r.rows == 131'072);
  CHECK(moonep.host_syncs == 0);
  CHECK_FALSE(moonep.dynamic_shapes);
  CHECK(moonep.max_buffer() == Bytes(134'656LL * 7168));
  CHECK(copy_free.max_buffer() == Bytes(64LL * 131'072 * 7168));
  CHECK(copy_free.host_syncs == 0);
  CHECK(deepep.host_syncs == 1);
  CHECK(deepep.dynamic_shapes);
  CHECK(deepep.max_rows() > 131'072 * 3 / 2);
  CHECK(moonep.pool.count() == 14LL * (66'060'288 + 132'120'576));
}

TEST_CASE("moonep: the published shape over MaxVio on 8 x H20 - flat, while DeepEP grows in time and memory") {
  // E = 384, H = 7168, K = 8, width 2048; an H20 sustains about 130 TFLOP/s. Experts dominate the iteration.
  const auto iteration = [](const DispatchResult& r) {
    std::int64_t padded = 0;
    for (const RankDispatch& rank : r.ranks) padded = std::max(padded, rank.padded_rows);
    const Time experts = Flops(3.0 * 2.0 * static_cast<double>(padded) * 3.0 * 7168 * 2048) / FlopRate(130e12);
    const LayerExchange x = layer_exchange(r, false);
    return experts + x.forward + x.backward + 2 * r.time.replicate;
  };
  const auto workload_for = [](double wanted_violation) {
    double low = 0.0, high = 4.0;
    DispatchWorkload w;
    w.topk = 8;
    w.width = 7168;
    w.expert = {.width = 7168, .intermediate = 2048};
    for (int i = 0; i < 24; ++i) {
      const double sigma = 0.5 * (low + high);
      w.counts = draw_counts(log_normal(sigma), {.ranks = 8, .experts = 384, .topk = 8, .tokens_per_rank = 8192}, {});
      (max_violation(w.counts.per_expert()) < wanted_violation ? low : high) = sigma;
    }
    return w;
  };
  const DispatchWorkload even = workload_for(0.2);
  const double moonep_even = iteration(run("moonep", even)).milliseconds();
  const double deepep_even = iteration(run("deepep", even)).milliseconds();
  double last_time = 0.0;
  Bytes last_buffer;
  for (const double violation : {1.0, 10.0, 20.0}) {
    CAPTURE(violation);
    const DispatchWorkload w = workload_for(violation);
    CHECK(max_violation(w.counts.per_expert()) == doctest::Approx(violation).epsilon(0.05));
    CHECK(iteration(run("moonep", w)).milliseconds() == doctest::Approx(moonep_even).epsilon(0.03));
    const DispatchResult deepep = run("deepep", w);
    CHECK(iteration(deepep).milliseconds() > std::max(last_time, deepep_even));
    CHECK(deepep.max_buffer() > last_buffer);
    last_time = iteration(deepep).milliseconds();
    last_buffer = deepep.max_buffer();
  }
  CHECK(last_time > 1.4 * deepep_even);
  CHECK(last_buffer.as_double() > 1.4 * run("deepep", even).max_buffer().as_double());
}

TEST_CASE("moonep with a tolerance avoids nearly all copies at low skew") {
  const DispatchWorkload w = k3(8, log_normal(0.3));
  const DispatchResult strict = run("moonep", w), loose = run("moonep_tolerance", w, {.tolerance = 0.15});
  const auto copies = [](const DispatchResult& r) {
    int n = 0;
    for (const RankDispatch& rank : r.ranks) n += rank.replicas_sent;
    return n;
  };
  CHECK(copies(strict) >= 7);
  CHECK(copies(loose) == 0);
  CHECK(loose.time.replicate == Time());
  CHECK(static_cast<double>(loose.max_rows()) <= 1.15 * 4096 * 16);
}

TEST_CASE("beyond a node, one copy per node needs fewer RDMA bytes than one per rank") {
  const DispatchWorkload w = k3(64, log_normal(0.3, true));
  const DispatchResult per_rank = run("copy_free", w), per_node = run("moonep", w);
  const auto rdma = [](const DispatchResult& r) {
    Bytes b;
    for (const RankDispatch& rank : r.ranks) b += rank.dispatch.rdma_sent;
    return b;
  };
  CHECK(rdma(per_node).as_double() < 0.6 * rdma(per_rank).as_double());
  CHECK(per_node.time.dispatch < per_rank.time.dispatch);
}

TEST_CASE("moonep hierarchical keeps replicas within the node where it can") {
  const DispatchWorkload w = k3(64, log_normal(0.3, true));
  const auto remote_replicas = [](const DispatchResult& r) {
    Bytes b;
    for (const RankDispatch& rank : r.ranks) b += rank.replication.rdma_sent;
    return b;
  };
  const DispatchResult flat = run("moonep", w), near = run("moonep_hierarchical", w);
  CHECK(remote_replicas(near).as_double() < 0.8 * remote_replicas(flat).as_double());
  CHECK(near.max_rows() == flat.max_rows());
}

TEST_CASE("allgather moves every token to every rank, whatever the routing") {
  const DispatchResult even = run("allgather", k3(8, log_normal(0.0))),
                       skewed = run("allgather", k3(8, log_normal(1.0)));
  CHECK(even.time.dispatch == skewed.time.dispatch);
  CHECK(even.ranks[3].dispatch.nvlink_received == Bytes(7LL * 4096 * 7168));
  // Top-16 of 8 ranks touches nearly every rank anyway: gathering beats sending every copy.
  CHECK(even.time.dispatch < run("alltoall", k3(8, log_normal(0.0))).time.dispatch);
}

TEST_CASE("alltoall: no de-duplication costs bytes, capacity drops rows and bounds them") {
  const DispatchWorkload w = k3(8, log_normal(1.0));
  const DispatchResult plain = run("alltoall", w), deepep = run("deepep", w);
  CHECK(plain.ranks[0].dispatch.nvlink_sent > deepep.ranks[0].dispatch.nvlink_sent);
  const DispatchResult drop = run("alltoall_drop", w, {.capacity_factor = 1.5}),
                       all = run("alltoall_drop", w, {.capacity_factor = 100});
  CHECK(drop.dropped_rows > 0);
  CHECK(drop.dropped_rows < w.counts.total() / 2);
  CHECK(all.dropped_rows == 0);
  CHECK(drop.host_syncs == 0);
  CHECK(plain.host_syncs == 1);
  for (const RankDispatch& r : drop.ranks) CHECK(r.rows == drop.ranks[0].rows);
}

TEST_CASE("eplb balances what it has seen and not what it has not") {
  const DispatchWorkload w = k3(64, log_normal(1.0));
  const DispatchResult home = run("deepep", w), seen = run("eplb", w);
  const DispatchWorkload other = [] {
    RoutingSpec spec = log_normal(1.0);
    spec.seed = 99;
    return k3(64, spec);
  }();
  const DispatchResult stale = run("eplb", w, {.history = &other.counts});
  CHECK(static_cast<double>(seen.max_rows()) < 1.05 * 4096 * 16);
  CHECK(static_cast<double>(stale.max_rows()) > 1.2 * 4096 * 16);
  CHECK(seen.max_rows() < home.max_rows());
  CHECK(seen.memory_per_layer.count() == 66'060'288 + 132'120'576);
}

TEST_CASE("a layer has five exchanges with the backward re-dispatch, four without") {
  const DispatchResult r = run("moonep", k3(8, log_normal(0.3)));
  const LayerExchange five = layer_exchange(r, true), four = layer_exchange(r, false);
  CHECK(five.forward == four.forward);
  CHECK(five.backward - four.backward == r.time.dispatch + r.time.dispatch_local);
}

TEST_CASE("an unknown dispatcher is named with the nearest known one") {
  CHECK_THROWS_WITH_AS(find_dispatcher("mooneep"), doctest::Contains("did you mean 'moonep'?"), ConfigError);
  CHECK_THROWS_AS(dispatch_rates("h100"), ConfigError);
}

TEST_CASE("grouped rows are padded per expert, and the launch follows the counts") {
  const std::vector<std::int64_t> counts{0, 1, 128, 129};
  CHECK(grouped_rows(counts) == std::vector<std::int64_t>{0, 128, 128, 256});
  const GemmTile tall{128, 256, 1.0}, flat{64, 256, 0.8};
  const std::vector<GemmTile> tiles{tall, flat};
  // Many tiny groups waste half of a 128-row tile; large groups do not.
  const std::vector<std::int64_t> tiny(264, 60), large(16, 8192);
  CHECK(choose_launch(tiny, 6144, 132, tiles).tile == flat);
  CHECK(choose_launch(large, 6144, 132, tiles).tile == tall);
  CHECK(choose_launch(large, 6144, 132, tiles).relative_time < 1.05);
  CHECK(choose_launch(tiny, 6144, 132, tiles).relative_time < launch_cost(tiny, 6144, 132, tall).relative_time);
}
