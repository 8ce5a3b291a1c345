// Step times of tiny pipelines against the closed forms and against hand computation.
#include <doctest/doctest.h>

#include "models/build/step.h"
#include "sim/base/error.h"
#include "tests/unit/models/build/fake_machine.h"

using namespace k3sim;
using k3sim::test::equal_but_transfers;
using k3sim::test::fake_machine;
using k3sim::test::tiny_scenario;

namespace {

Time step_time(const Scenario& s, const Machine& m, StepGraphOptions::Detail detail) {
  StepOptions o;
  o.graph.detail = detail;
  return predict_step(s, m, o).summary.step;
}

constexpr auto kKernel = StepGraphOptions::Detail::kernel;
constexpr auto kStep = StepGraphOptions::Detail::step;

}  // namespace

TEST_CASE("step: one GPU runs every micro-batch forward and backward in turn") {
  const Machine m = fake_machine(Time::us(3), Time::us(4), Time::us(5));
  const Scenario s = tiny_scenario(1, 6, 2);
  CHECK(equal_but_transfers(step_time(s, m, kKernel), Time::us(6 * 2 * 12)));
  CHECK(equal_but_transfers(step_time(s, m, kStep), Time::us(6 * 2 * 12)));
}

TEST_CASE("step: 1F1B takes (m + p - 1)(F + B + W) on uniform stages with free transfers") {
  const Machine m = fake_machine(Time::us(10), Time::us(10), Time::us(10));
  for (int p : {2, 3, 4, 8})
    for (int mb : {p, 2 * p, 3 * p + 1}) {
      const Scenario s = tiny_scenario(p, mb, p);
      CAPTURE(p);
      CAPTURE(mb);
      CHECK(equal_but_transfers(step_time(s, m, kKernel), Time::us(30 * (mb + p - 1))));
      CHECK(equal_but_transfers(step_time(s, m, kStep), Time::us(30 * (mb + p - 1))));
    }
}

TEST_CASE("step: interleaving divides the bubble by the number of chunks") {
  const Machine m = fake_machine(Time::us(10), Time::us(12), Time::us(8));
  for (int v : {2, 4}) {
    Scenario s = tiny_scenario(4, 8, 4 * v);
    s.parallel.vpp = v;
    s.schedule.name = "interleaved";
    const Time work = Time::us(30 * 8 * v);
    CHECK(equal_but_transfers(step_time(s, m, kKernel), work + Time::us(30 * 3)));
  }
}

TEST_CASE("step: the slowest stage sets the pace and the others idle") {
  const Machine m = fake_machine(Time::us(10), Time::us(10), Time::us(10));
  Scenario s = tiny_scenario(2, 4, 3);
  s.parallel.stage_layers = {1, 2};
  // Stage 1 works 4 x 60 us after the first forward of stage 0 (10 us); stage 0 ends with one backward (20 us).
  CHECK(equal_but_transfers(step_time(s, m, kKernel), Time::us(10 + 240 + 20)));
  StepOptions o;
  o.graph.detail = kKernel;
  const StepPrediction p = predict_step(s, m, o);
  CHECK(p.ranks[0].compute == Time::us(4 * 30));
  CHECK(p.ranks[1].compute == Time::us(4 * 60));
  CHECK(equal_but_transfers(p.ranks[0].bubble + p.ranks[0].pp, Time::us(270 - 120)));
  for (const RankBreakdown& r : p.ranks) CHECK(r.sum() == p.summary.step);
}

TEST_CASE("step: full recompute adds one forward per backward") {
  const Machine m = fake_machine(Time::us(10), Time::us(10), Time::us(10));
  Scenario s = tiny_scenario(2, 4, 2);
  s.activation.policy = "full";
  CHECK(equal_but_transfers(step_time(s, m, kKernel), Time::us(40 * 5)));
  CHECK(predict_step(s, m, {}).summary.mean.recompute > Time());
}

TEST_CASE("step: a launch-bound pass takes as long as its launches") {
  Machine m = fake_machine(Time(), Time(), Time());
  m.software.host_launch = Time::us(5);
  const Scenario s = tiny_scenario(1, 1, 1);
  StepOptions o;
  o.keep_graph = true;
  o.graph.detail = kKernel;
  const StepPrediction p = predict_step(s, m, o);
  std::int64_t launches = 0;
  for (const Chunk& c : p.plan->chunks)
    for (const ChunkPart& part : c.parts)
      launches += part.timed->forward.summary.launches + part.timed->backward.summary.launches;
  CHECK(launches > 20);
  CHECK(p.summary.step == Time::us(5 * launches));
}

TEST_CASE("step: an impossible batch is refused with its numbers") {
  const Machine m = fake_machine(Time::us(1), Time::us(1), Time::us(1));
  Scenario s = tiny_scenario(1, 3, 1);
  s.batch.micro_batch = 2;
  CHECK_THROWS_WITH_AS(predict_step(s, m, {}), doctest::Contains("3 sequences per step"), ConfigError);
}

TEST_CASE("step: vocabulary layers split over the stages cost every rank a share instead of the last one everything") {
  // A layer takes 3 x 10 us per micro-batch, the head 3 x 40 us for all of its 128 columns.
  Machine m = fake_machine(Time::us(10), Time::us(10), Time::us(10));
  m.cost = std::make_shared<k3sim::test::FakeCost>([](const Kernel& k) {
    const std::string name(k.name);
    if (k.family != KernelFamily::gemm) return Time();
    if (name.find("lm_head") != std::string::npos) return Time::ns(40'000 * k.n / 128);
    return name.find("ffn_up") != std::string::npos ? Time::us(10) : Time();
  });
  Scenario s = tiny_scenario(4, 64, 4);
  CHECK(step_time(s, m, kKernel) > Time::us(64 * 150));
  s.parallel.vocabulary_stages = true;
  s.schedule.extra_warmup = 2;
  for (bool overlap : {true, false}) {
    CAPTURE(overlap);
    s.parallel.vocabulary_overlap = overlap;
    const Time split = step_time(s, m, kKernel);
    CHECK(split >= Time::us(64 * 60));
    CHECK(split <= Time::us((64 + 2 * 3 + 2) * 60));
  }
}

TEST_CASE("step: why a rank waits: warm-up, cool-down, imbalance and dependency sum to its bubble") {
  const Machine m = fake_machine(Time::us(10), Time::us(10), Time::us(10));
  Scenario s = tiny_scenario(4, 8, 4);
  for (const char* name : {"1f1b", "gpipe", "zb_h1", "uneven"}) {
    CAPTURE(name);
    const bool uneven = std::string(name) == "uneven";
    s.schedule.name = uneven ? "1f1b" : name;
    s.model.layers.resize(uneven ? 5 : 4, s.model.layers.front());
    s.parallel.stage_layers = uneven ? std::vector<int>{1, 1, 2, 1} : std::vector<int>{};
    const StepPrediction p = predict_step(s, m, {});
    Time imbalance;
    for (const RankBreakdown& b : p.ranks) {
      CHECK(b.why.warm_up + b.why.cool_down + b.why.imbalance + b.why.dependency == b.bubble);
      imbalance += b.why.imbalance;
    }
    // The last rank waits three forwards; zero-bubble ranks start the step when they start.
    if (!uneven) CHECK(equal_but_transfers(p.ranks[3].why.warm_up, s.schedule.name == "zb_h1" ? Time() : Time::us(30)));
    CHECK((imbalance > Time()) == uneven);
  }
}

TEST_CASE("step: slices of a sequence shorten the bubble and keep the work") {
  const Machine m = fake_machine(Time::us(20), Time::us(20), Time::us(20));
  Machine scaled = m;  // kernels in proportion to their rows
  scaled.cost = std::make_shared<k3sim::test::FakeCost>([](const Kernel& k) {
    const bool counted = k.family == KernelFamily::gemm && std::string(k.name).find("ffn_up") != std::string::npos;
    return counted ? Time::us(k.m) : Time();  // 32 rows of a whole sequence: 32 us per pass
  });
  Scenario s = tiny_scenario(4, 8, 4);
  CHECK(equal_but_transfers(step_time(s, scaled, kKernel), Time::us(96 * (8 + 3))));
  s.schedule.name = "seq1f1b";
  for (int slices : {1, 2, 4}) {
    CAPTURE(slices);
    s.schedule.slices = slices;
    CHECK(equal_but_transfers(step_time(s, scaled, kKernel), Time::us(96 * 8 + 96 * 3 / slices)));
  }
}
