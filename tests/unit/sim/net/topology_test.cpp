// Topologies: switch counts of the reference design, routes, faults, and what is reported as impossible.
#include "sim/net/topology.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/base/error.h"
#include "sim/net/router.h"
#include "sim/net/topology_checks.h"

using namespace k3sim;

namespace {

NodeSpec hgx() {
  return {.name = "hgx8",
          .nvlink = Bandwidth(370e9),
          .nvlink_latency = Time::us(1),
          .pcie = Bandwidth(55e9),
          .pcie_latency = Time::ns(300),
          .dram = Bandwidth(225e9),
          .socket_link = Bandwidth(100e9)};
}
FabricSpec rails(double oversubscription = 1.0) {
  return {.name = "rails",
          .kind = FabricKind::rail_fat_tree,
          .link_rate = Bandwidth(50e9),
          .oversubscription = oversubscription,
          .routing_efficiency = 0.96,
          .device_latency = Time::us(1),
          .switch_latency = Time::ns(450)};
}
ClusterSpec cluster(int nodes, const FabricSpec& f) {
  return {.node = hgx(), .fabric = f, .nodes = nodes, .faults = {}};
}

bool uses(const Topology& t, const Route& r, LinkClass kind) {
  return std::any_of(r.path.begin(), r.path.end(),
                     [&](const PathElement& e) { return t.links[e.link.value].kind == kind; });
}

}  // namespace

TEST_CASE("topology: switch counts equal the published reference design from 512 to 16,384 GPUs") {
  const struct {
    int nodes, leaf, spine, core;
  } rows[] = {{64, 16, 8, 0},      {128, 32, 16, 0},      {256, 64, 32, 0},
              {512, 128, 128, 64}, {1024, 256, 256, 128}, {2048, 512, 512, 256}};
  for (const auto& row : rows) {
    const Topology t = build_topology(cluster(row.nodes, rails()));
    INFO("nodes ", row.nodes);
    CHECK(t.leaf_switches == row.leaf);
    CHECK(t.spine_switches == row.spine);
    CHECK(t.core_switches == row.core);
  }
}

TEST_CASE("topology: the eight-plane fabric reaches 16,384 endpoints with 768 switches in two tiers") {
  FabricSpec f = rails();
  f.kind = FabricKind::multi_plane;
  const Topology t = build_topology(cluster(2048, f));
  CHECK(t.tiers == 2);
  CHECK(t.leaf_switches + t.spine_switches + t.core_switches == 768);
}

TEST_CASE("topology: same rail in one unit passes one switch, other units three, other pods five") {
  const Topology t = build_topology(cluster(512, rails()));
  const Router router(t);
  CHECK(router.gpu_to_gpu(0, 8).switches == 1);
  CHECK(router.gpu_to_gpu(0, 33 * 8).switches == 3);
  CHECK(router.gpu_to_gpu(0, 200 * 8).switches == 5);
  CHECK(uses(t, router.gpu_to_gpu(0, 200 * 8), LinkClass::core_up));
}

TEST_CASE("topology: with PXN cross-rail traffic changes rail over NVLink and stays under its leaf") {
  FabricSpec f = rails();
  const Topology with = build_topology(cluster(4, f));
  const Route r = Router(with).gpu_to_gpu(0, 8 + 5);
  CHECK(uses(with, r, LinkClass::nvlink));
  CHECK(!uses(with, r, LinkClass::leaf_up));
  CHECK(r.switches == 1);
  f.pxn = false;
  const Topology without = build_topology(cluster(4, f));
  const Route s = Router(without).gpu_to_gpu(0, 8 + 5);
  CHECK(!uses(without, s, LinkClass::nvlink));
  CHECK(uses(without, s, LinkClass::leaf_up));
  CHECK(s.switches == 3);
}

TEST_CASE("topology: planes that never meet are crossed over NVLink even without PXN") {
  FabricSpec f = rails();
  f.kind = FabricKind::multi_plane;
  f.pxn = false;
  const Topology t = build_topology(cluster(64, f));
  CHECK(uses(t, Router(t).gpu_to_gpu(0, 40 * 8 + 3), LinkClass::nvlink));
}

TEST_CASE("topology: every route is a walk: each link begins where the one before ended") {
  for (const FabricKind kind : {FabricKind::rail_fat_tree, FabricKind::multi_plane, FabricKind::leaf_spine}) {
    FabricSpec f = rails();
    f.kind = kind;
    f.routing = Routing::ecmp;
    if (kind == FabricKind::leaf_spine) f.nodes_per_unit = 4;
    const Topology t = build_topology(cluster(200, f));
    const Router router(t);
    for (const int to : {1, 8, 13, 300, 1599}) {
      const Route r = router.gpu_to_gpu(3, to, 42);
      for (std::size_t i = 1; i < r.path.size(); ++i) {
        INFO(t.link_name(r.path[i - 1].link), " then ", t.link_name(r.path[i].link));
        CHECK(t.links[r.path[i - 1].link.value].to == t.links[r.path[i].link.value].from);
      }
      CHECK(t.vertices[t.links[r.path.front().link.value].from].index == 3);
      CHECK(t.vertices[t.links[r.path.back().link.value].to].index == to % 8);
    }
  }
}

TEST_CASE("topology: shortest paths by Boost.Graph are never longer than our routes") {
  const Topology t = build_topology(cluster(40, rails()));
  const Router router(t);
  for (const int to : {1, 8, 39 * 8 + 7}) {
    const Route r = router.gpu_to_gpu(0, to);
    const std::uint32_t a = t.links[r.path.front().link.value].from, b = t.links[r.path.back().link.value].to;
    CHECK(hop_distance(t, a, b) <= static_cast<int>(r.path.size()));
  }
}

TEST_CASE("topology: both ports of a dual-plane NIC carry half, and one dead port leaves the other") {
  FabricSpec f = rails();
  f.planes_per_nic = 2;
  f.nodes_per_unit = 32;
  ClusterSpec spec = cluster(4, f);
  const Topology t = build_topology(spec);
  const Route r = Router(t).gpu_to_gpu(0, 8);
  CHECK(std::count_if(r.path.begin(), r.path.end(), [](const PathElement& e) { return e.weight == 0.5; }) == 4);
  spec.faults = {{t.link_name(LinkId(static_cast<std::size_t>(t.nodes[0].fabric_up[0]))), 0.0}};
  const Topology broken = build_topology(spec);
  const Route s = Router(broken).gpu_to_gpu(0, 8);
  for (const PathElement& e : s.path) CHECK(e.weight == 1.0);
}

TEST_CASE("topology: a dead NIC is replaced by its neighbour over NVLink") {
  ClusterSpec spec = cluster(2, rails());
  spec.faults = {{"n0.nic3>leaf3", 0.0}};
  const Topology t = build_topology(spec);
  const Route r = Router(t).gpu_to_gpu(3, 8 + 3);
  for (const PathElement& e : r.path) CHECK(t.links[e.link.value].capacity.value() > 0);
  CHECK(uses(t, r, LinkClass::nvlink));
}

TEST_CASE("topology: a server cut off from the fabric is an error that names it") {
  ClusterSpec spec = cluster(2, rails());
  for (int k = 0; k < 8; ++k) spec.faults.push_back({"n1.nic" + std::to_string(k) + ">leaf" + std::to_string(k), 0.0});
  CHECK_THROWS_WITH_AS(build_topology(spec), doctest::Contains("n1.gpu0"), ConfigError);
}

TEST_CASE("topology: contradictions are reported together") {
  ClusterSpec spec = cluster(0, rails());
  spec.node.nics = 3;
  spec.fabric.nodes_per_unit = 64;
  try {
    build_topology(spec);
    FAIL("accepted");
  } catch (const ConfigError& e) {
    CHECK(e.problems().size() == 3);
  }
}

TEST_CASE("topology: an unknown fault name is an error") {
  ClusterSpec spec = cluster(2, rails());
  spec.faults = {{"n0.nic99>leaf0", 0.5}};
  CHECK_THROWS_AS(build_topology(spec), ConfigError);
}

TEST_CASE("topology: replicas fold on a full non-blocking fabric only") {
  CHECK(!reason_to_unfold(cluster(64, rails())));
  CHECK(reason_to_unfold(cluster(40, rails())));
  CHECK(reason_to_unfold(cluster(64, rails(2.0))));
  FabricSpec hashed = rails();
  hashed.routing = Routing::ecmp;
  CHECK(reason_to_unfold(cluster(64, hashed)));
  ClusterSpec degraded = cluster(64, rails());
  degraded.faults = {{"n0.nic3>leaf3", 0.5}};
  CHECK(reason_to_unfold(degraded));
}

TEST_CASE("topology: an NVLink domain of 72 needs no fabric") {
  NodeSpec node = hgx();
  node.gpus = node.nics = 72;
  const Topology t = build_topology({.node = node, .fabric = {}, .nodes = 1, .faults = {}});
  CHECK(Router(t).gpu_to_gpu(0, 71).path.size() == 2);
}
