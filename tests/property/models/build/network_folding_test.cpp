// With the network on, folded and unfolded runs of the same symmetric step agree to the picosecond; where equal ranks
// see different networks the step unfolds by itself.
#include <doctest/doctest.h>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "tests/property/models/build/folding_scenario.h"

using namespace k3sim;

namespace {

using Layout = test::FoldingLayout;

// Wide enough that communication is worth sharing links for.
Scenario scenario(const Layout& l) {
  Scenario s = test::folding_scenario(l, 256);
  s.model.hidden = 1024;
  s.batch.sequence = 1024;
  s.activation.offload = l.cp == 1;
  s.moe.dispatcher = l.vpp > 1 ? "alltoall" : "deepep";
  return s;
}

Machine machine(const Scenario& s) {
  Machine m = load_machine(s);
  m.cost = test::varied_cost();
  m.software.bucket = Bytes(1 << 22);
  return m;
}

StepPrediction predict(const Scenario& s, const Machine& m, std::vector<GroupKind> unfold = {},
                       std::size_t max_unfolded_tasks = StepOptions().max_unfolded_tasks) {
  StepOptions o;
  o.graph.detail = StepGraphOptions::Detail::kernel;
  o.max_unfolded_tasks = max_unfolded_tasks;
  o.graph.unfold = std::move(unfold);
  return predict_step(s, m, o);
}

}  // namespace

TEST_CASE("network: one representative per pipeline stage gives the same picosecond as all ranks") {
  const std::vector<Layout> layouts{
      {1, 2, 2, 1, 2, 1, 1}, {1, 1, 1, 2, 4, 1, 1}, {2, 2, 2, 2, 2, 1, 1},   {1, 1, 1, 1, 8, 8, 1},
      {2, 1, 2, 1, 8, 4, 1}, {4, 2, 4, 1, 4, 4, 1}, {8, 8, 2, 1, 4, 1, 1},   {4, 1, 4, 1, 8, 8, 1},
      {8, 4, 4, 1, 4, 8, 2}, {8, 2, 4, 2, 4, 2, 2}, {2, 1, 1, 1, 16, 16, 1}, {8, 1, 2, 1, 32, 16, 1},
  };
  double lost = 0;
  for (const Layout& l : layouts) {
    const Scenario s = scenario(l);
    const Machine m = machine(s);
    const StepPrediction folded = predict(s, m);
    const StepPrediction all = predict(s, m, {GroupKind::tp, GroupKind::cp, GroupKind::dp});
    CAPTURE(l.nodes);
    CAPTURE(l.tp);
    CAPTURE(l.pp);
    CAPTURE(l.dp);
    CAPTURE(l.ep);
    CHECK(folded.summary.network.flows);
    CHECK(folded.summary.network.communications > 0);
    CHECK(folded.summary.step.picoseconds() == all.summary.step.picoseconds());
    CHECK(folded.summary.network.lost() == doctest::Approx(all.summary.network.lost()).epsilon(1e-6));
    for (std::size_t c = 0; c < folded.summary.network.classes.size(); ++c)
      CHECK(folded.summary.network.classes[c].bytes ==
            doctest::Approx(all.summary.network.classes[c].bytes).epsilon(1e-9));
    lost += folded.summary.network.lost();
  }
  CHECK(lost > 0);  // some of these steps do share links
}

TEST_CASE("network: oversubscribed leaves and a partly filled unit unfold the ranks, and longer steps follow") {
  Scenario s = scenario({8, 1, 2, 1, 32, 16, 1});
  const Machine open = machine(s);
  const StepPrediction free = predict(s, open);
  CHECK(free.summary.network.unfolding == NetworkUnfolding::none);
  CHECK(!free.summary.folded.empty());
  Machine tight = open;
  tight.cluster.fabric.nodes_per_unit = 2;  // rings and expert groups leave their leaf
  tight.cluster.fabric.oversubscription = 8;
  const StepPrediction slow = predict(s, tight);
  CHECK(slow.summary.network.unfolding == NetworkUnfolding::ranks);
  CHECK(slow.summary.network.unfold_reason == "leaves are oversubscribed 8:1");
  CHECK(slow.summary.folded.empty());
  CHECK(slow.summary.step > free.summary.step);
  CHECK(slow.summary.network.lost() > free.summary.network.lost());
  Machine uneven = open;
  uneven.cluster.fabric.nodes_per_unit = 3;
  const StepPrediction partly = predict(s, uneven);
  CHECK(partly.summary.network.unfolding == NetworkUnfolding::ranks);
  CHECK(partly.summary.network.unfold_reason == "the last unit holds 2 of 3 nodes");
  CHECK(partly.summary.step >= free.summary.step);
  s.network.faults = {"n0.nic3>leaf3=0.25"};  // one NIC at a quarter: everybody waits for its rank
  const StepPrediction faulty = predict(s, open);
  CHECK(faulty.summary.network.unfolding == NetworkUnfolding::ranks);
  CHECK(faulty.summary.step > free.summary.step);
}

// Asking for every rank and being unfolded automatically is the same; beyond the limit of tasks the links are unfolded
// alone, where a stage waits for its slowest rank: never faster, and close.
TEST_CASE("network: automatic unfolding equals asking for it, and unfolding only the links is a tight upper bound") {
  double largest = 0;
  for (const Layout& l : {Layout{8, 1, 2, 1, 32, 16, 1}, Layout{8, 4, 4, 1, 4, 8, 2}, Layout{4, 1, 4, 1, 8, 8, 1}}) {
    const Scenario s = scenario(l);
    for (const bool partly : {false, true}) {
      Machine m = machine(s);
      m.cluster.fabric.nodes_per_unit = partly ? 3 : 2;
      m.cluster.fabric.oversubscription = partly ? 1 : 4;
      const StepPrediction ranks = predict(s, m), links = predict(s, m, {}, 0);
      const StepPrediction asked = predict(s, m, {GroupKind::tp, GroupKind::cp, GroupKind::dp});
      CAPTURE(l.nodes);
      CAPTURE(partly);
      CHECK(ranks.summary.network.unfolding == NetworkUnfolding::ranks);
      CHECK(ranks.summary.folded.empty());
      CHECK(ranks.summary.step.picoseconds() == asked.summary.step.picoseconds());
      CHECK(links.summary.network.unfolding == NetworkUnfolding::flows);
      CHECK(links.summary.network.unfold_reason == ranks.summary.network.unfold_reason);
      CHECK(!links.summary.folded.empty());
      CHECK(links.summary.step >= ranks.summary.step);
      largest = std::max(largest, links.summary.step / ranks.summary.step - 1);
    }
  }
  MESSAGE("unfolding only the links adds at most ", 100 * largest, " %");
  CHECK(largest < 0.05);
}

TEST_CASE("network: without sharing and slow-down, flows take the calibrated times") {
  Scenario s = scenario({1, 8, 1, 1, 1, 1, 1});
  s.activation.offload = false;
  Machine m = machine(s);
  m.slowdown = {};
  const StepPrediction flows = predict(s, m);
  s.network.mode = "closed_form";
  const StepPrediction closed = predict(s, m);
  CHECK(flows.summary.network.communications > 0);
  CHECK(!closed.summary.network.flows);
  CHECK(flows.summary.step.seconds() == doctest::Approx(closed.summary.step.seconds()).epsilon(1e-8));
  CHECK(flows.summary.network.lost() < 1e-8 * flows.summary.step.seconds());
}

TEST_CASE("network: communication slows the kernels beside it by the measured matrix, not more") {
  Scenario s = scenario({2, 1, 2, 1, 8, 4, 1});
  Machine m = machine(s);
  m.slowdown = {};
  const Time free = predict(s, m).summary.step;
  m.slowdown.compute_beside_all_reduce = m.slowdown.compute_beside_all_to_all = m.slowdown.memory_beside_comm = 1.5;
  const Time slowed = predict(s, m).summary.step;
  CHECK(slowed > free);
  CHECK(slowed < scale(free, 1.5));
}
