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
  o.memory.emulated_ranks = 0;
  return predict_step(s, load_machine(s), o);
}

double gib(Bytes b) {
  return b.as_double() / (1 << 30);
}

double worst_gib(const StepPrediction& p) {
  double most = 0;
  for (const RankMemory& m : p.memory) most = std::max(most, gib(m.reserved + m.outside));
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

TEST_CASE("K3 at 8K: without offload, FP8 storage or CPU gradient shards it is slower or no longer fits") {
  // Every rank may choose anew what replaces the mechanism.
  const std::vector<std::string> chooses{"activation.policy=auto", "activation.recompute=[]"};
  const StepPrediction all = predict("k3_8k_h800", chooses);
  struct Removed {
    std::string what;
    std::string change;
  };
  for (const Removed& r :
       {Removed{"offload", "activation.forbid=[offload]"}, Removed{"FP8 storage", "activation.forbid=[fp8]"},
        Removed{"cached block rows", "attnres.pipeline=naive"},
        Removed{"pipeline ZeRO-2", "optimizer.gradient_shards=gpu"}}) {
    CAPTURE(r.what);
    const StepPrediction p = predict("k3_8k_h800", {chooses[0], chooses[1], r.change});
    const double slower = 100.0 * (p.summary.step / all.summary.step - 1.0);
    const int rank = fullest(p);
    MESSAGE("without " << r.what << ": step " << slower << " %, short by " << gib(p.summary.short_by)
                       << " GiB on stage " << rank << ", host short by " << gib(p.summary.host_short_by) << " GiB");
    const double host = p.summary.host_peak / all.summary.host_peak - 1.0;
    CHECK((std::abs(slower) > 0.05 || !p.summary.fits || std::abs(host) > 0.05));
  }
}

TEST_CASE("K3 at 8K under the report's fixed policy: each mechanism removed costs memory, by GiB and stage") {
  const std::vector<std::string> fixed{"activation.policy=k3_unified", "activation.recompute=[]"};
  const StepPrediction all = predict("k3_8k_h800", fixed);
  CHECK(all.summary.short_by == Bytes(0));
  const auto without = [&](const std::string& change) {
    std::vector<std::string> changes = fixed;
    changes.push_back(change);
    return predict("k3_8k_h800", changes);
  };
  const StepPrediction no_offload = without("activation.forbid=[offload]");
  CHECK_FALSE(no_offload.summary.fits);
  CHECK(gib(no_offload.summary.short_by) > 50);
  const StepPrediction no_fp8 = without("activation.forbid=[fp8]");
  CHECK(gib(no_fp8.summary.host_peak) > 1.5 * gib(all.summary.host_peak));
  const StepPrediction naive = without("attnres.pipeline=naive");
  CHECK(worst_gib(naive) > worst_gib(all) + 1);
  const StepPrediction gpu_shards = without("optimizer.gradient_shards=gpu");
  CHECK(worst_gib(gpu_shards) > worst_gib(all) + 1);
  MESSAGE("all " << worst_gib(all) << " GiB; without offload short " << gib(no_offload.summary.short_by) << " on stage "
                 << fullest(no_offload) << "; without FP8 host " << gib(no_fp8.summary.host_peak) << " against "
                 << gib(all.summary.host_peak) << "; naive rows " << worst_gib(naive) << "; shards on GPU "
                 << worst_gib(gpu_shards));
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

TEST_CASE("partition: the balanced cut is no worse than the even one by its own measure and in the step") {
  const Scenario s = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"), {"activation.policy=k3_unified"});
  Scenario balanced = s;
  balanced.parallel.partition = "balanced";
  StepOptions o;
  o.allow_assumed = true;
  o.memory.emulated_ranks = 0;
  const Machine m = load_machine(s);
  const Time even = predict_step(s, m, o).summary.step, better = predict_step(balanced, m, o).summary.step;
  MESSAGE("even " << even.seconds() << " s, balanced " << better.seconds() << " s");
  CHECK(better <= scale(even, 1.01));
}
