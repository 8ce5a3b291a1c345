// The allocator's reserved peak of the measured modules: request log of plain PyTorch code through the emulator.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/config/model_loader.h"
#include "models/memory/layer_events.h"
#include "models/memory/module_log.h"
#include "models/transformer/kda_scratch.h"
#include "sim/mem/emulate.h"

using namespace k3sim;

TEST_CASE("A module's log keeps weights, input and weight gradients and frees everything else") {
  const ModelSpec model = load_model("kimi_k3");
  for (const char* name : {"kda", "mla", "dense", "latent_moe"}) {
    const Bytes weights(2 * module_parameters(model, name));
    const Bytes base = weights + Bytes(2 * 4096 * model.hidden);
    const RequestLog log = module_log(model, {.modules = {name}, .tokens = 4096, .base = base});
    Bytes live;
    for (const MemoryRequest& r : log.requests())
      if (r.kind == MemoryRequestKind::kAlloc && log.live(r.id)) live += Bytes(r.value);
    CAPTURE(name);
    CHECK(live == base + weights);
  }
}

TEST_CASE("Reserved bytes of measured modules on an H200") {
  struct Row {
    const char* module;
    std::int64_t tokens, base, reserved;
  };
  // measurements/h200_k3_modules.csv
  const Row rows[] = {{"kda", 4096, 1130775552, 6039797760},         {"kda", 16384, 1659257856, 18419286016},
                      {"latent_moe", 4096, 2460769280, 10863247360}, {"dense", 4096, 1696595968, 6037700608},
                      {"mla", 4096, 707792896, 3093299200},          {"mla", 16384, 1236275200, 9615441920}};
  const ModelSpec model = load_model("kimi_k3");
  for (const Row& r : rows) {
    const RequestLog log = module_log(model, {.modules = {r.module}, .tokens = r.tokens, .base = Bytes(r.base)});
    const double predicted = emulate(log).peak_reserved().as_double();
    CAPTURE(r.module);
    CAPTURE(r.tokens);
    CHECK(predicted == doctest::Approx(static_cast<double>(r.reserved)).epsilon(0.06));
  }
}

TEST_CASE("What an MLA module asks for in backward is what PyTorch asks for, in that order") {
  // Sizes in values per token, of one pass over a module written in PyTorch (autograd on the CPU, an allocation hook;
  // the attention kernel as ATen's cuDNN wrapper asks): from the product of gate and core output to the joined gradient
  // of keys and values. Weight gradients and tensors below 4,096 values are left out.
  const std::int64_t expected[] = {12288, 12288, 12288, 12288, 7168, 18432, 18432, 12288, 37056, 24576};
  const std::int64_t tokens = 1024;
  const ModelSpec model = load_model("kimi_k3");
  const LayerProgram p = module_program(model, "mla", tokens, {.gradient_held = true});
  const LayerEvents e = layer_events(*p.liveness, {});
  std::vector<std::int64_t> made;
  for (const MemoryEvent& m : e.backward.events) {
    const EventTensor& t = e.tensors[m.tensor];
    const std::int64_t values = t.bytes.count() / 2 / tokens;
    if (m.alloc && t.role != MemoryRole::weight_gradient && values >= 4096) made.push_back(values);
  }
  REQUIRE(made.size() >= std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    CAPTURE(i);
    CHECK(made[i] == expected[i]);
  }
}

TEST_CASE("The KDA core's requests peak at the scratch bytes that the layer graph counts") {
  for (std::int64_t d : {64, 128}) {
    const ScratchScript script = kda_backward_script(1000, d);
    std::vector<std::int64_t> slots(static_cast<std::size_t>(script.slots()), 0);
    std::int64_t live = 0, peak = 0;
    for (const ScratchStep& s : script.steps()) {
      const auto slot = static_cast<std::size_t>(s.slot);
      if (s.kind == ScratchStep::Kind::result) live += s.slot < 4 ? 2 * 1000 * d : 0;  // beta's is small
      if (s.kind == ScratchStep::Kind::make) live += slots[slot] = s.bytes.count();
      if (s.kind == ScratchStep::Kind::drop) live -= std::exchange(slots[slot], 0);
      peak = std::max(peak, live);
    }
    // 52 d bytes per token and head with d = 128 (k3-facts 4.7); the two FP32 matrices do not grow with d.
    CHECK(peak == 1000 * (48 * d + 2 * 4 * 64 + (d == 64 ? -4 * d : 0)));
    CHECK(live == 4 * 2 * 1000 * d);
  }
}

TEST_CASE("Reserved and allocated bytes of the measured stack of three KDA blocks and one MLA block") {
  const ModelSpec model = load_model("kimi_k3");
  const RequestLog log = module_log(
      model,
      {.modules = {"kda_block", "kda_block", "kda_block", "mla_block"}, .tokens = 4096, .base = Bytes(12247763968)});
  const AllocatorResult r = emulate(log);
  CHECK(r.peak_allocated().as_double() == doctest::Approx(42254230528.0).epsilon(0.01));
  CHECK(r.peak_reserved().as_double() == doctest::Approx(46015709184.0).epsilon(0.06));
}
