// Collectives as flows: undisturbed they take the closed-form time, the bytes on the wire are those of the algorithm,
// and sharing slows them down as it should.
#include "models/comm/collective_flows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "models/comm/fabric_loader.h"
#include "models/config/data_files.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

CommModel model(const std::string& gpu) {
  return load_comm_model(data_path("hardware_profiles/collectives/" + gpu + ".yaml"));
}

struct World {
  Topology topology;
  Router router;
  explicit World(const ClusterQuestion& q) : topology(build_topology(load_cluster(q))), router(topology) {}
  LinkLoads loads() const { return LinkLoads(topology.links.size()); }
};

PlacedGroup group(const World& w, int ranks, int stride = 1) {
  std::vector<int> gpus(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) gpus[static_cast<std::size_t>(r)] = r * stride;
  return place_group(w.topology, gpus);
}

Time run(const World& w, std::vector<FlowPlan> plans) {
  const auto capacities = w.topology.capacities();
  const NetworkWork work = one_job_per_task(plans);
  NetworkProgress network(capacities, work);
  std::vector<TaskId> done;
  for (std::size_t t = 0; t < plans.size(); ++t) network.start(TaskId(t), Time(), Time());
  Time last;
  for (Time t = network.next_completion(); t != Time::max(); t = network.next_completion()) {
    network.advance(t, done);
    last = t;
  }
  CHECK(done.size() == plans.size());
  return last;
}

}  // namespace

TEST_CASE("collective_flows: on a free network every plan takes the calibrated time") {
  for (const char* gpu : {"h100_sxm", "h800_sxm", "h200_sxm"}) {
    const CommModel m = model(gpu);
    const World w({.gpu = gpu, .nodes = 32});
    LinkLoads scratch = w.loads();
    for (int k = 0; k < kCollectiveKinds; ++k) {
      const auto kind = static_cast<Collective>(k);
      for (const auto& [ranks, stride] :
           {std::pair{2, 1}, {4, 1}, {8, 1}, {16, 1}, {64, 1}, {256, 1}, {32, 8}, {8, 8}}) {
        if (kind == Collective::send_recv && ranks != 2) continue;
        const PlacedGroup g = group(w, ranks, stride);
        for (const Bytes size : {Bytes::mib(1), Bytes::mib(64), Bytes::gib(2)}) {
          const FlowPlan plan = collective_flows(m, w.router, w.topology, kind, size, g, scratch);
          const double free = collective_time(m, kind, size, comm_group(g)).time.seconds();
          INFO(gpu, " ", to_string(kind), " ", ranks, " ranks, stride ", stride, ", ", size.count(), " bytes");
          CHECK(run(w, {plan}).seconds() == doctest::Approx(free).epsilon(0.03));
        }
      }
    }
  }
}

TEST_CASE("collective_flows: NICs carry the bytes of the algorithm") {
  const World w({.nodes = 8});
  LinkLoads loads = w.loads();
  const PlacedGroup g = group(w, 64);
  const FlowContext c{w.topology, w.router, g, loads};
  const double s = 1e9;
  const auto nic_bytes = [&] {
    double sum = 0;
    for (std::size_t l = 0; l < w.topology.links.size(); ++l) {
      const bool out = w.topology.links[l].kind == LinkClass::nic &&
                       w.topology.vertices[w.topology.links[l].from].kind == VertexKind::nic;
      if (out) sum += loads.on(static_cast<std::uint32_t>(l));
    }
    return sum;
  };
  SUBCASE("ring all_reduce: every node passes 2 (n-1)/n S on") {
    add_ring_loads(c, s, Collective::all_reduce);
    CHECK(nic_bytes() == doctest::Approx(8 * 2 * 63 / 64.0 * s));
  }
  SUBCASE("double tree: 2 (N-1) S in all, whatever the shape") {
    add_tree_loads(c, s, true);
    CHECK(nic_bytes() == doctest::Approx(2 * 7 * s));
  }
  SUBCASE("all_to_all: every rank sends (n-g)/n S away") {
    add_all_to_all_loads(c, s);
    CHECK(nic_bytes() == doctest::Approx(64 * 56 / 64.0 * s));
  }
  SUBCASE("two hops: what was asked for") {
    add_two_hop_loads(c, {.network = Bytes(7'000'000), .nvlink = Bytes(1'000'000)});
    CHECK(nic_bytes() == doctest::Approx(64 * 7e6));
  }
}

TEST_CASE("collective_flows: PAT moves (n-1)/n of the buffer per rank for any number of ranks") {
  const World w({.nodes = 23});
  for (const int n : {2, 3, 7, 16, 23}) {
    LinkLoads loads = w.loads();
    const PlacedGroup g = group(w, n, 8);
    add_pat_loads({w.topology, w.router, g, loads}, 1e9);
    CHECK(loads.on(w.topology.nodes[0].fabric_up[0]) == doctest::Approx(1e9 * (n - 1) / n));
  }
}

TEST_CASE("collective_flows: rails of different GPUs do not disturb each other, two groups on one rail share it") {
  const CommModel m = model("h100_sxm");
  const World w({.nodes = 16});
  LinkLoads scratch = w.loads();
  const auto rail = [&](int k) {
    std::vector<int> gpus;
    for (int n = 0; n < 16; ++n) gpus.push_back(8 * n + k);
    return collective_flows(m, w.router, w.topology, Collective::all_gather, Bytes::gib(2),
                            place_group(w.topology, gpus), scratch);
  };
  const double alone = run(w, {rail(0)}).seconds();
  CHECK(run(w, {rail(0), rail(1), rail(7)}).seconds() == doctest::Approx(alone));
  CHECK(run(w, {rail(3), rail(3)}).seconds() > 1.8 * alone);
}

TEST_CASE("collective_flows: a 4:1 oversubscribed fabric slows traffic between units only") {
  const CommModel m = model("h100_sxm");
  const World full({.nodes = 64}), half({.nodes = 64, .oversubscription = 4});
  const auto time = [&](const World& w, int nodes) {
    LinkLoads scratch = w.loads();
    const PlacedGroup g = group(w, nodes * 8);
    return run(w, {collective_flows(m, w.router, w.topology, Collective::all_to_all, Bytes::gib(1), g, scratch)})
        .seconds();
  };
  CHECK(time(half, 32) == doctest::Approx(time(full, 32)));  // one unit
  CHECK(time(half, 64) > 1.5 * time(full, 64));              // half of the traffic crosses
}

TEST_CASE("collective_flows: the hierarchical all_reduce has three stages and a plausible time") {
  const CommModel m = model("h100_sxm");
  const World w({.nodes = 8});
  LinkLoads scratch = w.loads();
  const FlowPlan plan = hierarchical_all_reduce_flows(m, w.router, w.topology, Bytes::gib(1), group(w, 64), scratch);
  CHECK(plan.stages.size() == 3);
  CHECK(plan.stages[1].flows.size() == 8);
  const double t = run(w, {plan}).seconds();
  const double bound = 2.0 * 7 / 8 * 1073741824.0 / 8 / 48.5e9;  // the rails alone
  CHECK(t > bound);
  CHECK(t < 3 * bound);
}

TEST_CASE("collective_flows: groups that are uneven over nodes are refused with the numbers") {
  const World w({.nodes = 2});
  const std::vector<int> uneven{0, 1, 2, 8};
  CHECK_THROWS_WITH_AS(place_group(w.topology, uneven), doctest::Contains("3 members"), ConfigError);
}
