// Balanced and block-aligned cuts of K3: time, memory and boundary bytes each move the cut, and so do head and MTP
// layer.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "models/build/machine_loader.h"
#include "models/build/partition.h"
#include "models/build/step.h"
#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

struct Cut {
  std::vector<int> layers;
  PartitionCost cost;
};

Scenario scenario(const std::string& name, std::vector<std::string> changes) {
  return load_scenario(data_path("scenarios/" + name + "/scenario.yaml"), changes);
}

Cut balanced(const std::string& name, std::vector<std::string> changes) {
  changes.insert(changes.end(), {"parallel.stage_layers=[]", "parallel.partition=balanced"});
  const Scenario s = scenario(name, changes);
  const Machine m = load_machine(s);
  const StepPlan plan = make_step_plan(s, m);
  return {plan.scenario.parallel.stage_layers, partition_cost(plan, m, plan.scenario.parallel.stage_layers)};
}

PartitionCost cost_of(const std::string& name, const std::vector<std::string>& changes, const std::vector<int>& cut) {
  const Scenario s = scenario(name, changes);
  const Machine m = load_machine(s);
  return partition_cost(make_step_plan(s, m), m, cut);
}

int layers_before(const std::vector<int>& cut, std::size_t chunks) {
  return std::accumulate(cut.begin(), cut.begin() + static_cast<std::ptrdiff_t>(chunks), 0);
}

const std::vector<std::string> kOneChunk{"parallel.vpp=1", "parallel.stage_layers=[]"};

std::vector<std::string> one_chunk(const std::string& more) {
  std::vector<std::string> out = kOneChunk;
  out.push_back(more);
  return out;
}

}  // namespace

TEST_CASE("partition: at a million tokens the balanced cut spreads MLA layers over the ranks") {
  std::vector<int> even(48, 2);
  even[0] = even[16] = even[47] = 1;
  const Cut cut = balanced("k3_1m_h800", {});
  const PartitionCost by_count = cost_of("k3_1m_h800", {}, even);
  CHECK(std::accumulate(cut.layers.begin(), cut.layers.end(), 0) == 93);
  CHECK(cut.cost.value < by_count.value);
  CHECK(cut.cost.slowest_rank < 0.8 * by_count.slowest_rank);
  CHECK(cut.cost.missing_gib == 0);
}

TEST_CASE("partition: head and MTP layer take the room of decoder layers in the last chunk") {
  const Cut with = balanced("k3_2048_h800", one_chunk("mtp=true"));
  CHECK(with.layers.back() < *std::max_element(with.layers.begin(), with.layers.end()));
}

TEST_CASE("partition: tight memory moves layers from early ranks, which hold more micro-batches, to late ones") {
  const std::vector<std::string> keep{"parallel.vpp=1", "parallel.stage_layers=[]", "activation.policy=k2",
                                      "activation.recompute=[]"};
  std::vector<std::string> roomy = keep, tight = keep;
  roomy.push_back("cluster.memory_override=4000 GiB");
  tight.push_back("cluster.memory_override=450 GiB");
  const Cut wide = balanced("k3_2048_h800", roomy), narrow = balanced("k3_2048_h800", tight);
  CHECK(layers_before(narrow.layers, 4) < layers_before(wide.layers, 4));
  CHECK(narrow.cost.missing_gib < cost_of("k3_2048_h800", tight, wide.layers).missing_gib);
}

TEST_CASE("partition: boundary bytes count: exposed sends of all block rows lighten late ranks") {
  // Uncached rows over a slow network make late boundaries (up to nine rows) dear and early ones (two rows) cheap.
  std::vector<std::string> changes{"parallel.vpp=1",
                                   "parallel.stage_layers=[]",
                                   "attnres.pipeline=naive",
                                   "overlap.p2p=false",
                                   "cluster.nic_override=2 GB/s",
                                   "parallel.ep=8",
                                   "cluster.memory_override=4000 GiB",
                                   "mtp=false"};
  const Cut rows = balanced("k3_2048_h800", changes);
  changes[2] = "attnres.pipeline=cached";
  changes[4] = "cluster.nic_override=50 GB/s";
  const Cut cheap = balanced("k3_2048_h800", changes);
  CHECK(rows.layers != cheap.layers);
  changes[2] = "attnres.pipeline=naive";
  changes[4] = "cluster.nic_override=2 GB/s";
  CHECK(rows.cost.value < cost_of("k3_2048_h800", changes, cheap.layers).value);
}

TEST_CASE("partition: blocks gives the aligned stages of PP8, and refuses more chunks than blocks") {
  const Scenario s = scenario("k3_2048_h800", {"parallel.pp=8", "parallel.vpp=1", "parallel.partition=blocks"});
  const StepPlan plan = make_step_plan(s, load_machine(s));
  CHECK(plan.scenario.parallel.stage_layers == std::vector<int>{12, 12, 12, 12, 12, 12, 12, 9});
  const Scenario many = scenario("k3_2048_h800", {"parallel.partition=blocks"});
  CHECK_THROWS_WITH_AS(make_step_plan(many, load_machine(many)), doctest::Contains("8 blocks of layers"), ConfigError);
}

TEST_CASE("partition: balanced is never slower than by count, at 8K on 16 x 2 chunks and at 1M on 16 x 3") {
  for (const char* name : {"k3_2048_h800", "k3_1m_h800"}) {
    const Scenario even = scenario(name, {"parallel.stage_layers=[]", "parallel.partition=even"});
    const Scenario balanced = scenario(name, {"parallel.stage_layers=[]", "parallel.partition=balanced"});
    StepOptions o;
    o.memory.emulated_ranks = 0;
    const Machine m = load_machine(even);
    const Time a = predict_step(even, m, o).summary.step, b = predict_step(balanced, m, o).summary.step;
    MESSAGE(name << ": by count " << a.seconds() << " s, balanced " << b.seconds() << " s");
    CHECK(b <= a);
  }
}

TEST_CASE("partition: at a million tokens the balanced cut is faster in the step than layers by count") {
  std::string even = "parallel.stage_layers=[1";
  for (int c = 1; c < 48; ++c) even += c == 16 || c == 47 ? ", 1" : ", 2";
  const Scenario counted = scenario("k3_1m_h800", {even + "]"});
  const Scenario better = scenario("k3_1m_h800", {"parallel.stage_layers=[]", "parallel.partition=balanced"});
  StepOptions o;
  o.memory.emulated_ranks = 0;
  const Machine m = load_machine(counted);
  const Time a = predict_step(counted, m, o).summary.step, b = predict_step(better, m, o).summary.step;
  MESSAGE("by count " << a.seconds() << " s, balanced " << b.seconds() << " s");
  CHECK(b < scale(a, 0.9));
}
