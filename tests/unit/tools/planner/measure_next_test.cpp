// What to measure next: gains are ordered and real, and what nothing rests on is not asked for.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "tools/planner/measure_next.h"

using namespace k3sim;

TEST_CASE("measure_next: twenty shapes, largest gain first; measuring them narrows the bar") {
  const Scenario s = load_scenario("k3_8k_h800", {});
  const MeasurementPlan plan = measure_next(s, load_machine(s), true);
  REQUIRE(plan.list.size() == 20);
  double share = 0, gain = 0;
  for (std::size_t i = 0; i < plan.list.size(); ++i) {
    const MeasureNext& m = plan.list[i];
    if (i > 0) CHECK(m.narrows_pct <= plan.list[i - 1].narrows_pct);
    CHECK(m.narrows_pct > 0);
    CHECK(m.narrows_pct <= m.share_pct * m.error_pct / 100.0 + 1e-9);
    CHECK(!m.shape.empty());
    share += m.share_pct;
    gain += m.narrows_pct;
  }
  CHECK(share > 20.0);
  CHECK(share <= 100.0);
  const MeasurementPlan everything = measure_next(s, load_machine(s), true, 1000);
  CHECK(std::any_of(everything.list.begin(), everything.list.end(), [](const MeasureNext& m) { return m.collective; }));
  CHECK(plan.after_pct < plan.bar_pct - 0.5 * plan.list.front().narrows_pct);
}

TEST_CASE("measure_next: a GPU with more of its kernels measured has less to gain from them") {
  const char* const model = "qwen3_30b_a3b";
  const auto kernels = [&](const std::string& gpu) {
    const Scenario s = load_scenario(
        "llama3_405b_16384_h100",
        {std::string("model=") + model, "cluster.gpu=" + gpu, "cluster.nodes=2", "parallel={tp: 1, pp: 1, ep: 8}",
         "batch={sequence: 4096, global_sequences: 64}", "schedule={name: 1f1b}", "optimizer={name: adamw, zero: 1}"});
    double sum = 0;
    for (const MeasureNext& m : measure_next(s, load_machine(s), true, 1000).list)
      if (!m.collective) sum += m.narrows_pct;
    return sum;
  };
  CHECK(kernels("h200_sxm") < kernels("b200_sxm"));
}
