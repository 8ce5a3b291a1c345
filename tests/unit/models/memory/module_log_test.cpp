// The allocator's reserved peak of the measured modules: request log of plain PyTorch code through the emulator.
#include <doctest/doctest.h>

#include "models/config/model_loader.h"
#include "models/memory/module_log.h"
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
  const Row rows[] = {{"kda", 4096, 1130775552, 6039797760},
                      {"kda", 16384, 1659257856, 18419286016},
                      {"mla", 4096, 707792896, 3093299200},
                      {"mla", 16384, 1236275200, 9615441920}};
  const ModelSpec model = load_model("kimi_k3");
  for (const Row& r : rows) {
    const RequestLog log = module_log(model, {.modules = {r.module}, .tokens = r.tokens, .base = Bytes(r.base)});
    const double predicted = emulate(log).peak_reserved().as_double();
    CAPTURE(r.module);
    CAPTURE(r.tokens);
    CHECK(predicted == doctest::Approx(static_cast<double>(r.reserved)).epsilon(0.12));
  }
}
