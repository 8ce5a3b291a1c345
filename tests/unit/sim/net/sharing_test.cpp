// What sharing does on real topologies: hashing collisions, oversubscription, offload against RDMA, tasks as flows.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "sim/engine/engine.h"
#include "sim/graph/graph_builder.h"
#include "sim/net/network_progress.h"
#include "sim/net/router.h"

using namespace k3sim;

namespace {

ClusterSpec ecmp_pair_of_leaves(int uplinks, Routing routing) {
  ClusterSpec spec;
  spec.node = {.name = "one_gpu",
               .gpus = 1,
               .nvlink = Bandwidth(370e9),
               .pcie = Bandwidth(400e9),
               .nics = 1,
               .sockets = 1,
               .dram = Bandwidth(400e9),
               .socket_link = Bandwidth(1e9)};
  spec.fabric = {.name = "two_leaves",
                 .kind = FabricKind::leaf_spine,
                 .link_rate = Bandwidth(50e9),
                 .switch_ports = 2 * uplinks,
                 .nodes_per_unit = uplinks,
                 .routing = routing,
                 .routing_efficiency = 0.96};
  spec.nodes = 2 * uplinks;
  return spec;
}

// Every node of leaf 0 sends `flows` flows to its partner under leaf 1; the rate of the slowest over its fair share.
double slowest_fraction(int uplinks, int flows, Routing routing, std::uint64_t seed) {
  const Topology t = build_topology(ecmp_pair_of_leaves(uplinks, routing));
  const Router router(t);
  const auto capacities = t.capacities();
  FlowEngine engine(capacities);
  std::uint32_t id = 0;
  for (int n = 0; n < uplinks; ++n) {
    for (int k = 0; k < flows; ++k) {
      const Route r = router.nic_to_nic(n, 0, uplinks + n, 0, seed * 1000 + static_cast<std::uint64_t>(k));
      engine.start({.id = FlowId(static_cast<std::size_t>(id++)), .path = r.path, .bytes = Bytes::mib(64)}, Time());
    }
  }
  double slowest = std::numeric_limits<double>::infinity();
  engine.for_each_active([&](FlowId, double rate, auto) { slowest = std::min(slowest, rate); });
  return slowest * flows / 50e9;
}

double mean_over_seeds(int uplinks, int flows) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) sum += slowest_fraction(uplinks, flows, Routing::ecmp, seed);
  return sum / 24;
}

}  // namespace

TEST_CASE("sharing: the slowest of 16 hashed flows per uplink gets 0.62 to 0.73 of line rate") {
  CHECK(mean_over_seeds(8, 16) == doctest::Approx(0.73).epsilon(0.04));
  CHECK(mean_over_seeds(16, 16) == doctest::Approx(0.68).epsilon(0.04));
  CHECK(mean_over_seeds(32, 16) == doctest::Approx(0.65).epsilon(0.04));
  CHECK(mean_over_seeds(60, 16) == doctest::Approx(0.62).epsilon(0.04));
}

TEST_CASE("sharing: one hashed flow per uplink is far worse, adaptive routing reaches 0.96") {
  CHECK(mean_over_seeds(32, 1) == doctest::Approx(0.28).epsilon(0.12));
  CHECK(slowest_fraction(32, 16, Routing::adaptive, 1) == doctest::Approx(0.96));
  CHECK(slowest_fraction(60, 1, Routing::adaptive, 1) == doctest::Approx(0.96));
}

TEST_CASE("sharing: RDMA and offload of one GPU share its PCIe link") {
  ClusterSpec spec;
  spec.node = {.name = "hgx8",
               .nvlink = Bandwidth(370e9),
               .pcie = Bandwidth(55e9),
               .dram = Bandwidth(225e9),
               .socket_link = Bandwidth(100e9)};
  spec.fabric = {.name = "rails", .kind = FabricKind::rail_fat_tree, .link_rate = Bandwidth(50e9)};
  spec.nodes = 2;
  const Topology t = build_topology(spec);
  const Router router(t);
  const auto capacities = t.capacities();
  FlowEngine engine(capacities);
  const Route rdma = router.gpu_to_gpu(0, 8), offload = router.gpu_to_host(0), other = router.gpu_to_host(1);
  engine.start({.id = FlowId(0), .path = rdma.path, .bytes = Bytes::gib(1)}, Time());
  engine.start({.id = FlowId(1), .path = offload.path, .bytes = Bytes::gib(1)}, Time());
  engine.start({.id = FlowId(2), .path = other.path, .bytes = Bytes::gib(1)}, Time());
  double rate[3] = {};
  engine.for_each_active([&](FlowId f, double r, auto) { rate[f.value] = r; });
  CHECK(rate[0] == doctest::Approx(27.5e9));
  CHECK(rate[1] == doctest::Approx(27.5e9));
  CHECK(rate[2] == doctest::Approx(55e9));
}

TEST_CASE("sharing: eight GPUs copying both ways are limited by the memory of their sockets") {
  ClusterSpec spec;
  spec.node = {.name = "hgx8",
               .nvlink = Bandwidth(370e9),
               .pcie = Bandwidth(55e9),
               .dram = Bandwidth(225e9),
               .socket_link = Bandwidth(100e9)};
  const Topology t = build_topology(spec);
  const Router router(t);
  const auto capacities = t.capacities();
  FlowEngine engine(capacities);
  for (int g = 0; g < 8; ++g) {
    const Route down = router.host_to_gpu(g), up = router.gpu_to_host(g);
    engine.start({.id = FlowId(2 * g), .path = down.path, .bytes = Bytes::gib(1)}, Time());
    engine.start({.id = FlowId(2 * g + 1), .path = up.path, .bytes = Bytes::gib(1)}, Time());
  }
  engine.for_each_active([&](FlowId, double rate, auto) { CHECK(rate == doctest::Approx(450e9 / 16)); });
}

TEST_CASE("sharing: tasks of the event engine move bytes, stage by stage, and slow each other down") {
  GraphBuilder b;
  const StreamId s0 = b.add_stream({}), s1 = b.add_stream({});
  const auto add = [&](StreamId stream, Time work) {
    return b.add(TaskSpec{.stream = stream, .duration = work, .resource = kExternalProgress});
  };
  const TaskId first = add(s0, Time()), second = add(s1, Time()), delay = add(s0, Time::us(5));
  const BuiltGraph built = std::move(b).build();
  const std::vector<Bandwidth> capacities{Bandwidth(10e9), Bandwidth(10e9)};
  const FlowClass on_zero{.path = {{LinkId(0)}}, .bytes = Bytes(10'000'000), .latency = {}};
  const FlowClass on_one{.path = {{LinkId(1)}}, .bytes = Bytes(10'000'000), .latency = Time::us(10)};
  std::vector<FlowPlan> plans(3);
  plans[first.value].stages = {{{on_zero}}, {{on_one}}};  // 10 MB over link 0, then 10 MB over link 1
  plans[second.value].stages = {{{on_zero, on_one}}};
  const NetworkWork work = one_job_per_task(plans);
  NetworkProgress network(capacities, work);
  const EngineResult r = simulate(built.graph, built.durations, {.progress = &network});
  // Link 0 is shared until 2 ms; link 1 serves the second task from 10 us on, then the first one's second stage.
  CHECK(r.times.finish[second.value] == Time::ms(2));
  CHECK(r.times.finish[first.value] == Time::ms(3) + Time::us(10));
  CHECK(r.times.finish[delay.value] == r.times.finish[first.value] + Time::us(5));
}
