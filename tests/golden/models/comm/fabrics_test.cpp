// Every shipped node and fabric profile loads, builds, and connects all its GPUs.
#include <doctest/doctest.h>

#include <string>

#include "models/comm/fabric_loader.h"
#include "models/config/data_files.h"
#include "sim/base/error.h"
#include "sim/net/router.h"

using namespace k3sim;

TEST_CASE("fabrics: every fabric builds with full and partly filled units") {
  for (const std::string& fabric : known_names("hardware_profiles/fabric")) {
    for (const int nodes : {1, 3, 40}) {
      INFO(fabric, " with ", nodes, " nodes");
      const Topology t = build_topology(load_cluster({.fabric = fabric, .nodes = nodes}));
      const Route r = Router(t).gpu_to_gpu(0, t.spec.gpus() - 1);
      CHECK(!r.path.empty());
      CHECK((nodes == 1 || r.switches >= 1));
    }
  }
}

TEST_CASE("fabrics: every node profile builds as a server of two") {
  for (const std::string& node : known_names("hardware_profiles/node")) {
    INFO(node);
    const ClusterSpec spec = load_cluster({.node = node, .nodes = 2});
    CHECK(build_topology(spec).nodes.size() == 2);
  }
}

TEST_CASE("fabrics: the NVLink rate is that of the GPU") {
  CHECK(load_cluster({.gpu = "h800_sxm"}).node.nvlink.value() == doctest::Approx(160e9));
  CHECK(load_cluster({.gpu = "h100_sxm"}).node.nvlink.value() == doctest::Approx(370e9));
}

TEST_CASE("fabrics: pods of the 24k-GPU kind are oversubscribed seven to one above 3,072 GPUs") {
  const Topology t = build_topology(load_cluster({.fabric = "pod_roce_400g", .nodes = 768}));
  CHECK(t.tiers == 3);
  double up = 0, leaves = 0;
  for (const Link& l : t.links) {
    if (l.kind == LinkClass::core_up) up += l.capacity.value();
    if (l.kind == LinkClass::leaf_up) leaves += l.capacity.value();
  }
  CHECK(leaves / up == doctest::Approx(7).epsilon(0.01));
}

TEST_CASE("fabrics: fewer GPUs of a server keep one NIC each, an override changes the payload") {
  const ClusterSpec spec = load_cluster({.nodes = 2, .gpus_per_node = 4, .nic_override = Bandwidth(20e9)});
  CHECK(spec.node.nics == 4);
  CHECK(spec.fabric.link_rate.value() * spec.fabric.payload_efficiency == doctest::Approx(20e9));
}

TEST_CASE("fabrics: an unknown name is a ConfigError") {
  CHECK_THROWS_AS(load_cluster({.fabric = "rail_fat_tree_4000g"}), ConfigError);
}
