// The shipped K3 context stages fit 80 GB GPUs, and each mechanism that makes them fit shows its worth when removed.
#include <doctest/doctest.h>

#include <cmath>

#include "models/build/machine_loader.h"
#include "models/build/overlap_report.h"
#include "models/build/step.h"
#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

StepPrediction predict(const std::string& name, const std::vector<std::string>& changes = {}) {
  const Scenario s = load_scenario(data_path("scenarios/" + name + "/scenario.yaml"), changes);
  StepOptions o;
  o.allow_assumed = true;
  o.keep_graph = true;
  return predict_step(s, load_machine(s), o);  // as `k3sim run`: with the emulated allocator
}

double gib(Bytes b) {
  return b.as_double() / (1 << 30);
}

double worst_gib(const StepPrediction& p) {
  double most = 0;
  for (const RankMemory& m : p.memory) most = std::max(most, gib(m.reserved + m.outside));
  return most;
}

// What is asked for, whatever the allocator does to fit it: reserved bytes give way when memory is short.
double worst_allocated_gib(const StepPrediction& p) {
  double most = 0;
  for (const RankMemory& m : p.memory) most = std::max(most, gib(m.allocated + m.outside));
  return most;
}

int fullest(const StepPrediction& p) {
  int rank = 0;
  for (const RankMemory& m : p.memory)
    if (m.short_by > p.memory[static_cast<std::size_t>(rank)].short_by) rank = m.rank;
  return rank;
}

}  // namespace

TEST_CASE("K3 context stages: 8K, 64K, 256K and 1M fit 80 GB H800 GPUs and their nodes' memory") {
  for (const std::string name : {"k3_8k_h800", "k3_64k_h800", "k3_256k_h800", "k3_1m_h800"}) {
    CAPTURE(name);
    const StepPrediction p = predict(name);
    MESSAGE(name << ": " << p.summary.step.seconds() << " s, MFU " << p.summary.mfu_pct << " %, " << worst_gib(p)
                 << " GiB, host " << gib(p.summary.host_peak) << " GiB per node");
    CHECK(p.summary.short_by == Bytes(0));
    CHECK(p.summary.host_short_by == Bytes(0));
    CHECK(p.summary.host_peak > Bytes(0));
    CHECK(p.summary.fits);
  }
}

TEST_CASE(
    "K3 context stages: each mechanism removed shows its effect, and what no longer fits says by how much where") {
  for (const std::string name : {"k3_8k_h800", "k3_64k_h800", "k3_256k_h800", "k3_1m_h800"}) {
    CAPTURE(name);
    const StepPrediction all = predict(name);
    const auto without = [&](const std::string& what, const std::string& change) {
      StepPrediction p = predict(name, {change});
      MESSAGE(name << " without " << what << ": " << all.summary.step.seconds() << " -> " << p.summary.step.seconds()
                   << " s, " << worst_gib(all) << " -> " << worst_gib(p) << " GiB reserved, "
                   << worst_allocated_gib(all) << " -> " << worst_allocated_gib(p) << " GiB allocated, short by "
                   << gib(p.summary.short_by) << " GiB on stage " << fullest(p) << ", host short by "
                   << gib(p.summary.host_short_by) << " GiB");
      return p;
    };
    const StepPrediction offload = without("offload", "activation.forbid=[offload]");
    CHECK_FALSE(offload.summary.fits);
    CHECK(gib(offload.summary.short_by) > 100);
    CHECK(offload.memory[static_cast<std::size_t>(fullest(offload))].short_by == offload.summary.short_by);
    // Without FP8 twice the bytes go to the host, which cannot take them.
    const StepPrediction fp8 = without("FP8 storage", "activation.forbid=[fp8]");
    CHECK_FALSE(fp8.summary.fits);
    CHECK(gib(fp8.summary.host_short_by) > 500);
    CHECK(fp8.summary.step > all.summary.step);
    const StepPrediction naive = without("cached block rows", "attnres.pipeline=naive");
    CHECK(worst_allocated_gib(naive) > worst_allocated_gib(all) + 4);
    CHECK(naive.summary.step > all.summary.step);
    // Gradient buffers of all chunks instead of two; in exchange no shards cross PCIe.
    const StepPrediction shards = without("pipeline ZeRO-2", "optimizer.gradient_shards=gpu");
    CHECK(worst_allocated_gib(shards) > worst_allocated_gib(all) + 2);
    CHECK(shards.summary.host_peak < all.summary.host_peak);
  }
}

TEST_CASE("policy auto: K3 fits without any setting by hand, under whatever it must not use") {
  const StepPrediction p = predict("k3_2048_h800", {"activation.policy=auto", "activation.recompute=[]"});
  CHECK(p.summary.fits);
  REQUIRE(p.plan->choices.size() == 16);
  const StepPrediction recompute = predict(
      "k3_2048_h800", {"activation.policy=auto", "activation.recompute=[]", "activation.forbid=[remote_offload]"});
  for (const RankMemory& m : recompute.memory) CHECK(m.remote_activations == Bytes(0));
}

TEST_CASE("activation rules: a tensor sent away leaves the GPU, a typing mistake is found") {
  const StepPrediction kept = predict("k3_2048_h800", {"activation.policy=none"});
  const StepPrediction away = predict(
      "k3_2048_h800", {"activation.policy=none", "activation.tensors=[{match: \"kda.*\", policy: fp8+offload}]"});
  CHECK(worst_gib(away) < worst_gib(kept) - 50);
  CHECK(away.summary.host_peak > Bytes(0));
  const Scenario s = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"), {});
  for (const LayerOverlap& o : overlap_report(*away.plan, load_machine(s))) {
    CHECK(o.kind.rfind("kda", 0) == 0);
    CHECK(o.copy > Time());
    CHECK(o.hides_in());
  }
  CHECK_THROWS_WITH_AS(predict("k3_2048_h800", {"activation.tensors=[{match: kda.q_cnv, policy: offload}]"}),
                       doctest::Contains("no saved tensor matches 'kda.q_cnv'"), ConfigError);
}
