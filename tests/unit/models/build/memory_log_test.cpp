// Request log of a rank's step: conservation, agreement with the counting walk, and what changing shapes cost.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/machine_loader.h"
#include "models/build/memory_log.h"
#include "models/build/memory_log_states.h"
#include "models/build/stage_memory.h"
#include "models/config/model_loader.h"

using namespace k3sim;

namespace {

Scenario small_scenario() {
  Scenario s;
  s.model = load_model("llama3_8b");
  s.cluster.gpu = "h100_sxm";
  s.cluster.nodes = 2;
  s.parallel.pp = 4;
  s.parallel.dp = 4;
  s.batch.sequence = 4096;
  s.batch.global_sequences = 64;
  return s;
}

Scenario k3_scenario(const std::string& dispatcher) {
  Scenario s;
  s.model = load_model("kimi_k3");
  s.cluster.gpu = "h800_sxm";
  s.cluster.nodes = 128;
  s.parallel.pp = 16;
  s.parallel.ep = 64;
  s.parallel.dp = 64;
  s.batch.sequence = 8192;
  s.batch.global_sequences = 64 * 32;
  s.moe.dispatcher = dispatcher;
  s.moe.routing.source = "lognormal";
  s.moe.routing.skew_sigma = 0.3;
  s.activation.policy = "k2";
  return s;
}

}  // namespace

TEST_CASE("Everything a step allocates is freed by its end, except weights, gradients and optimizer states") {
  for (const char* schedule : {"1f1b", "zb_h1", "gpipe"})
    for (const char* policy : {"none", "full", "k2", "unified", "per_operator"}) {
      Scenario s = small_scenario();
      s.schedule.name = schedule;
      s.activation.policy = policy;
      const Machine machine = load_machine(s);
      const StepPlan plan = make_step_plan(s, machine);
      const MemoryLog log = memory_log(plan, machine.software, 1, {});
      CAPTURE(schedule);
      CAPTURE(policy);
      for (const MemoryRequest& r : log.requests.requests()) {
        if (r.kind != MemoryRequestKind::kAlloc || !log.requests.live(r.id)) continue;
        const auto c = static_cast<MemoryCategory>(r.category);
        const bool state = c == MemoryCategory::weights || c == MemoryCategory::gradients ||
                           c == MemoryCategory::optimizer || c == MemoryCategory::weight_gradients;
        REQUIRE_MESSAGE(state, log.places[r.tag].name);
      }
    }
}

TEST_CASE("The emulated allocated peak is the counting walk's, up to rounding") {
  for (const char* policy : {"none", "full", "k2", "unified"})
    for (int rank : {0, 2, 3}) {
      Scenario s = small_scenario();
      s.activation.policy = policy;
      const Machine machine = load_machine(s);
      const StepPlan plan = make_step_plan(s, machine);
      const std::vector<RankMemory> counted = memory_per_rank(plan, machine, {.emulated_ranks = 0});
      MemoryReportOptions options;
      options.walk.steps = 1;
      options.details = false;
      const MemoryReport r = memory_report(plan, machine, rank, options);
      const Bytes expected = counted[static_cast<std::size_t>(rank)].allocated - machine.software.workspace_memory;
      CAPTURE(policy);
      CAPTURE(rank);
      CHECK(r.peak_allocated.as_double() == doctest::Approx(expected.as_double()).epsilon(0.001));
      CHECK(r.peak_reserved >= r.peak_allocated);
    }
}

TEST_CASE("K3 with static dispatch shapes fragments less than with rows that change from micro-batch to micro-batch") {
  double overhead[2];
  int i = 0;
  for (const char* dispatcher : {"moonep", "alltoall"}) {
    const Scenario s = k3_scenario(dispatcher);
    const Machine machine = load_machine(s);
    const StepPlan plan = make_step_plan(s, machine);
    MemoryReportOptions options;
    options.details = false;
    overhead[i++] = memory_report(plan, machine, 1, options).overhead();
  }
  MESSAGE("overhead static " << overhead[0] << ", changing " << overhead[1]);
  CHECK(overhead[1] > overhead[0] + 0.01);
}

TEST_CASE("A report names the peak, who is alive there, where memory runs out and what would save it") {
  Scenario s = small_scenario();
  const Machine machine = load_machine(s);
  const StepPlan plan = make_step_plan(s, machine);
  MemoryReportOptions options;
  const MemoryReport whole = memory_report(plan, machine, 0, options);
  CHECK_FALSE(whole.out_of_memory);
  CHECK(!whole.peak_at.empty());
  CHECK(!whole.at_peak.empty());
  CHECK(!whole.knobs.empty());
  Bytes by_category;
  for (const CategoryAmount& c : whole.timeline.breakdown) by_category += c.at_peak;
  CHECK(by_category == whole.peak_allocated);
  options.available = Bytes::ceil(whole.peak_allocated.as_double() * 0.8);
  const MemoryReport short_of = memory_report(plan, machine, 0, options);
  REQUIRE(short_of.out_of_memory);
  CHECK(!short_of.at_failure.empty());
}

TEST_CASE("A step that would reserve too much but not allocate it fits by giving unused segments back") {
  Scenario s = k3_scenario("alltoall");  // changing shapes fragment
  const Machine machine = load_machine(s);
  const MemoryOptions quick{.request_limit = 20'000};
  const auto fullest = [&](const std::vector<RankMemory>& ranks) {
    return *std::max_element(ranks.begin(), ranks.end(),
                             [](const RankMemory& a, const RankMemory& b) { return a.allocated < b.allocated; });
  };
  s.cluster.memory_override = Bytes::gib(1000);
  const StepPlan roomy = make_step_plan(s, machine);
  const RankMemory loose = fullest(memory_per_rank(roomy, machine, quick));
  CHECK(loose.retries == 0);
  REQUIRE(loose.reserved > loose.allocated);
  // Half of what fragmentation takes is not there.
  const Bytes needed = loose.allocated + loose.outside, all = loose.reserved + loose.outside;
  s.cluster.memory_override = Bytes((needed.count() + all.count()) / 2);
  const RankMemory squeezed = fullest(memory_per_rank(make_step_plan(s, machine), machine, quick));
  CHECK(squeezed.allocated == loose.allocated);
  CHECK(squeezed.retries > 0);
  CHECK(squeezed.short_by == Bytes(0));
  CHECK(squeezed.reserved + squeezed.outside <= *s.cluster.memory_override);
  // Less than what is allocated never fits.
  s.cluster.memory_override = needed - Bytes::gib(1);
  CHECK(fullest(memory_per_rank(make_step_plan(s, machine), machine, quick)).short_by > Bytes(0));
}

TEST_CASE("Gradients sharded chunk by chunk keep two chunks' sums instead of all of them") {
  Scenario s = small_scenario();
  s.parallel.vpp = 4;
  s.schedule.name = "interleaved";
  const Machine machine = load_machine(s);
  Bytes gradients[3];
  for (int zero : {1, 2}) {
    s.optimizer.zero = zero;
    const StepPlan plan = make_step_plan(s, machine);
    gradients[zero] = memory_per_rank(plan, machine, {.emulated_ranks = 0})[1].states.gradients;
    CHECK(gradients[zero] == state_bytes(state_shape(plan, 1), s.optimizer).gradients);
  }
  // Rank 1 has four equal chunks: half of the sums stay, and the shard of a data-parallel rank.
  CHECK(gradients[2].as_double() == doctest::Approx(gradients[1].as_double() * (0.5 + 1.0 / 4)).epsilon(0.001));
}

TEST_CASE("What lies outside the allocator is the sum of its items") {
  for (const char* dispatcher : {"moonep", "alltoall"}) {
    const Scenario s = k3_scenario(dispatcher);
    const Machine machine = load_machine(s);
    const StepPlan plan = make_step_plan(s, machine);
    Bytes sum;
    bool symmetric = false;
    for (const OutsidePart& part : outside_parts(plan, machine)) {
      sum += part.bytes;
      symmetric = symmetric || part.what.find("symmetric") != std::string::npos;
    }
    CHECK(sum == outside_allocator(plan, machine));
    CHECK(symmetric == (std::string(dispatcher) == "moonep"));
  }
}
