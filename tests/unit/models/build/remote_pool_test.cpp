// Remote offload: what leaves an early pipeline rank is carried by its partner.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/machine_loader.h"
#include "models/build/memory_log.h"
#include "models/build/remote_pool.h"
#include "models/build/step.h"
#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"

using namespace k3sim;

namespace {

StepPrediction predict(const std::string& policy, const std::string& more = "parallel.vpp=2") {
  const Scenario s =
      load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"),
                    {"activation.policy=keep_all", "activation.recompute=[]", "batch.global_tokens=16777216", more,
                     "activation.tensors=[{match: \"kda.*\", policy: " + policy + "}]"});
  StepOptions o;
  o.keep_graph = true;
  o.memory.emulated_ranks = 0;
  return predict_step(s, load_machine(s), o);
}

}  // namespace

TEST_CASE("remote offload: the partner carries what the sender saves, and the host nothing") {
  const StepPrediction kept = predict("keep"), away = predict("remote_offload");
  const int ranks = away.plan->schedule.ranks;
  for (int r = 0; r < ranks; ++r) {
    CAPTURE(r);
    const auto i = static_cast<std::size_t>(r), mirror = static_cast<std::size_t>(ranks - 1 - r);
    const RankMemory &before = kept.memory[i], &after = away.memory[i];
    CHECK(after.host_activations == Bytes(0));
    if (r < ranks / 2) {
      CHECK(after.remote_activations > Bytes(0));
      CHECK(after.partner_pool == Bytes(0));
      CHECK(after.allocated < before.allocated);
      // What waits at the partner is what no longer waits here, apart from the layer that is on its way.
      CHECK(before.activations - after.activations > after.remote_activations - Bytes::gib(12));
    } else {
      CHECK(after.remote_activations == Bytes(0));
      CHECK(after.partner_pool >= away.memory[mirror].remote_activations);
      CHECK(after.partner_pool < away.memory[mirror].remote_activations + Bytes::gib(12));
      CHECK(after.allocated == before.allocated + after.partner_pool);
    }
  }
  // Early ranks hold more micro-batches, so that lending evens the pipeline.
  CHECK(away.memory.front().remote_activations >
        away.memory[static_cast<std::size_t>(ranks / 2 - 1)].remote_activations);
  CHECK(away.summary.step > kept.summary.step);  // copies over the network are not free
}

TEST_CASE("remote offload: FP8 halves what the partner carries; one rank has no partner") {
  const StepPrediction wide = predict("remote_offload"), narrow = predict("fp8+remote_offload");
  const double ratio = narrow.memory.back().partner_pool / wide.memory.back().partner_pool;
  CHECK(ratio > 0.5);
  CHECK(ratio < 0.54);
  Schedule s;
  s.ranks = 1;
  CHECK(remote_partner(s, 0) == -1);
  s.ranks = 3;
  CHECK(remote_partner(s, 0) == 2);
  CHECK(remote_partner(s, 1) == -1);
  CHECK(remote_partner(s, 2) == -1);
}

namespace {

StepPrediction predict_schedule(const std::string& name, int emulated) {
  const Scenario s = load_scenario(
      data_path("scenarios/k3_2048_h800/scenario.yaml"),
      {"schedule={name: " + name + "}", "parallel.vpp=1", "batch.global_tokens=16777216",
       "activation={policy: keep_all}", "optimizer={name: adamw, zero: 1}", "cluster.memory_override=1000 GiB"});
  StepOptions o;
  o.keep_graph = true;
  o.memory.emulated_ranks = emulated;
  return predict_step(s, load_machine(s), o);
}

}  // namespace

TEST_CASE("bpipe: what early ranks lend leaves their GPU and lies on their partner's") {
  const StepPrediction plain = predict_schedule("1f1b", 0), lent = predict_schedule("bpipe", 0);
  const int ranks = lent.plan->schedule.ranks, limit = (ranks + 3) / 2;
  Bytes fullest_plain, fullest_lent;
  for (int r = 0; r < ranks; ++r) {
    CAPTURE(r);
    const RankMemory &before = plain.memory[static_cast<std::size_t>(r)],
                     &after = lent.memory[static_cast<std::size_t>(r)];
    const int most = std::min(static_cast<int>(plain.plan->microbatches), ranks - r), away = std::max(0, most - limit);
    const Bytes one = lent_bytes(*lent.plan, r);
    fullest_plain = std::max(fullest_plain, before.activations);
    fullest_lent = std::max(fullest_lent, after.activations + after.partner_pool);
    if (r < ranks / 2) {
      CHECK(after.partner_pool == Bytes(0));
      CHECK(after.remote_activations >= one * away);
      CHECK(after.remote_activations <= one * (away + 1));  // one on its way
      CHECK(before.allocated - after.allocated >= one * std::max(0, away - 1));
    } else {
      CHECK(after.remote_activations == Bytes(0));
      CHECK(after.partner_pool == lent.memory[static_cast<std::size_t>(ranks - 1 - r)].remote_activations);
      CHECK(after.allocated == before.allocated + after.partner_pool);
    }
  }
  CHECK(fullest_lent < fullest_plain);
  CHECK(lent.summary.step >= plain.summary.step);  // the copies take turns with the other traffic
}

TEST_CASE("bpipe: the emulated allocator sees the micro-batches go and come back") {
  const StepPrediction counted = predict_schedule("bpipe", 0);
  const MemoryReport report = rank_memory_report(*counted.plan, load_machine(counted.plan->scenario), 0);
  CHECK(!report.out_of_memory);
  CHECK(report.peak_allocated / counted.memory.front().allocated == doctest::Approx(1.0).epsilon(0.03));
}
