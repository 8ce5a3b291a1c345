// Remote offload: what leaves an early pipeline rank is carried by its partner.
#include <doctest/doctest.h>

#include "models/build/machine_loader.h"
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
