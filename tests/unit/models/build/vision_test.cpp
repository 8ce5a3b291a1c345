// Vision encoder: size, sharing of images, places in the schedule, cost and memory of the three placements.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/build/vision_load.h"
#include "models/config/data_files.h"
#include "models/config/model_loader.h"
#include "models/config/scenario_loader.h"

using namespace k3sim;

namespace {

StepPrediction predict(const std::vector<std::string>& changes) {
  const Scenario s = load_scenario(data_path("scenarios/k3_2048_h800/scenario.yaml"), changes);
  StepOptions o;
  o.keep_graph = true;
  o.memory.emulated_ranks = 0;
  return predict_step(s, load_machine(s), o);
}

double patch_cost(const ImagePart& i) {
  const auto p = static_cast<double>(i.patches);
  return (p + p * p / 8192) / i.ranks;
}

}  // namespace

TEST_CASE("vision: MoonViT-V2 has 401.2 M parameters without projector and 0.80 GFLOP per patch without scores") {
  const ModelSpec m = load_model("kimi_k3");
  CHECK(static_cast<double>(vision_parameters(m, false)) / 1e6 == doctest::Approx(401.2).epsilon(0.001));
  double flops = 0;
  for (const Kernel& k : vision_layer_kernels(m.vision, {{1024, 1}}, Pass::forward))
    if (k.family == KernelFamily::gemm) flops += k.flops.value();
  CHECK(flops * static_cast<double>(m.vision.layers) / 1024 / 1e9 == doctest::Approx(0.80).epsilon(0.02));
  // Four ranks see a quarter of the rows each and all keys.
  const std::vector<Kernel> quarter = vision_layer_kernels(m.vision, {{4096, 4}}, Pass::forward);
  CHECK(quarter.front().m == 1024);
  for (const Kernel& k : quarter)
    if (k.family == KernelFamily::attention) CHECK((k.seq_q == 1024 && k.seq_k == 4096 && !k.causal));
}

TEST_CASE("vision: numbers and sizes of images follow their laws") {
  VisionConfig v;
  v.images_per_sequence = 3;
  v.largest_image = 4096;
  double images = 0;
  std::vector<std::int64_t> sizes;
  for (std::int64_t s = 0; s < 4000; ++s)
    for (std::int64_t p : draw_images(v, s)) ++images, sizes.push_back(p);
  CHECK(images / 4000 == doctest::Approx(3.0).epsilon(0.03));
  std::sort(sizes.begin(), sizes.end());
  CHECK(static_cast<double>(sizes[sizes.size() / 2]) == doctest::Approx(1024).epsilon(0.07));
  CHECK(sizes.back() == 4096);
  CHECK(sizes.front() >= 64);
}

TEST_CASE("vision: sub-groups share large images, keep every patch and never take longer") {
  for (std::int64_t seed = 1; seed <= 30; ++seed) {
    VisionConfig v;
    v.images_per_sequence = 12;
    v.seed = static_cast<std::uint64_t>(seed);
    std::vector<std::int64_t> images = draw_images(v, 0);
    images.push_back(16384);
    const std::int64_t all = std::accumulate(images.begin(), images.end(), std::int64_t{0});
    const ImageAssignment whole = assign_images(images, 8, 1, patch_cost),
                          shared = assign_images(images, 8, 8, patch_cost);
    std::int64_t kept = 0;
    for (const auto& rank : shared.ranks) kept += vision_rows(rank);
    CAPTURE(seed);
    CHECK(kept == all);  // sizes are multiples of 64, sub-groups of at most 8
    CHECK(shared.makespan <= whole.makespan);
    CHECK(shared.makespan < 0.6 * patch_cost({16384, 1}));  // alone, the large one would take longer than everything
    CHECK(shared.makespan >= shared.mean);
  }
}

TEST_CASE("vision: every placement encodes before the first stage needs it and returns after its backward") {
  for (const char* placement : {"stage0", "decoupled", "bubbles"}) {
    CAPTURE(placement);
    const StepPrediction p = predict({std::string("vision.placement=") + placement, "vision.group=8"});
    std::map<int, Time> encoded, entered, left, returned;
    for (const ActionSpan& s : p.graph->spans) {
      const Time start = p.times->start[s.first];
      const Time finish = p.times->finish[s.end - 1];
      const int m = s.action.microbatch;
      if (s.action.kind == ActionKind::kVisionForward) encoded[m] = finish;  // embeddings sent
      if (s.action.kind == ActionKind::kVisionBackward) returned[m] = start;
      if (s.action.stage != 0) continue;
      if (s.action.kind == ActionKind::kForward) entered[m] = start;
      if (yields_input_grad(s.action.kind)) left[m] = start;
    }
    const auto n = static_cast<std::size_t>(p.plan->microbatches);
    REQUIRE(encoded.size() == n);
    REQUIRE(returned.size() == n);
    for (const auto& [m, t] : entered) CHECK(encoded.at(m) <= t);
    std::size_t late = 0;
    for (const auto& [m, t] : returned) late += t > left.at(m) ? 1 : 0;
    CHECK(late == n);
  }
}

TEST_CASE("vision: bubbles hide the encoder that stage 0 and the decoupled form pay for") {
  const StepPrediction text = predict({});
  std::map<std::string, StepPrediction> by;
  for (const char* placement : {"stage0", "decoupled", "bubbles"})
    by[placement] = predict({std::string("vision.placement=") + placement, "vision.group=8"});
  for (auto& [name, p] : by) {
    MESSAGE(name << ": " << p.summary.step.seconds() << " s, text only " << text.summary.step.seconds()
                 << " s, encoder " << p.summary.mean.vision.seconds() << " s per rank, imbalance "
                 << p.plan->vision.mean_imbalance);
    CHECK(p.summary.step > text.summary.step);
    CHECK(p.summary.mean.vision > Time());
    // Weights, gradients: 401 M plus projector, replicated on all ranks except for stage0.
    const bool everywhere = name != "stage0";
    for (std::size_t r = 0; r < p.memory.size(); ++r) {
      const Bytes more = p.memory[r].states.weights - text.memory[r].states.weights;
      CHECK(more == (everywhere || r == 0 ? p.plan->vision.parameters * Bytes(2) : Bytes(0)));
    }
  }
  CHECK(by["bubbles"].summary.step < by["decoupled"].summary.step);
  CHECK(by["decoupled"].summary.step < by["stage0"].summary.step);
  // K2.5's decoupled form reached 90 % of text-only speed.
  CHECK(text.summary.step / by["decoupled"].summary.step > 0.9);
}

TEST_CASE("vision: groups share large images, so that the slowest rank is faster") {
  const StepPrediction one = predict({"vision.placement=bubbles", "vision.group=1"});
  const StepPrediction eight = predict({"vision.placement=bubbles", "vision.group=8"});
  CHECK(eight.summary.mean.vision < one.summary.mean.vision);
}
