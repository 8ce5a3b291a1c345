// What Attention Residuals cost on the configuration of their authors: Kimi Linear 48B with blocks of three decoder
// layers (six sublayers: nine blocks and the embedding), with and without pipeline parallelism. They report less than
// 4 % end to end with it. Source: arXiv:2603.15031; k3-facts 2.5.
#include <doctest/doctest.h>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/model_loader.h"

using namespace k3sim;

namespace {

Time step_time(int pp, int vpp, std::int64_t block, const char* pipeline) {
  Scenario s;
  s.model = load_model("kimi_linear_48b");
  s.model.attnres_block = block;
  s.cluster.gpu = "h800_sxm";
  s.cluster.nodes = 8;
  s.parallel.pp = pp;
  s.parallel.vpp = vpp;
  s.parallel.ep = 8;
  s.schedule.name = vpp > 1 ? "interleaved" : "1f1b";
  s.batch.sequence = 4096;
  s.batch.micro_batch = 2;
  s.batch.global_sequences = 1024;
  s.moe.dispatcher = "deepep";
  s.attnres.pipeline = pipeline;
  StepOptions o;
  o.allow_assumed = true;
  o.memory.emulated_ranks = 0;
  return predict_step(s, load_machine(s), o).summary.step;
}

}  // namespace

TEST_CASE("attnres: Kimi Linear 48B pays less than 4 % on four pipeline stages and on none") {
  const double alone = step_time(1, 1, 3, "cached") / step_time(1, 1, 0, "cached") - 1;
  MESSAGE("without pipeline: " << 100 * alone << " %");
  CHECK(alone > 0);
  const Time plain = step_time(4, 1, 0, "cached");
  const double piped = step_time(4, 1, 3, "cached") / plain - 1;
  MESSAGE("four stages: " << 100 * piped << " %");
  CHECK(piped > 0);
  CHECK(piped < 0.04);
  CHECK(alone < 0.04);
}
