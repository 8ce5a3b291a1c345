// What a stack's kernels change in a layer: gradients added by the products, experts issued one by one, rows moved by
// PyTorch's operators.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

SplitConfig usual() {
  SplitConfig s;
  s.sequence = s.tokens = 4096;
  s.ep = 8;
  return s;
}

LayerProgram moe_layer(const SplitConfig& s) {
  return layer_program(load_model("qwen3_30b_a3b"), 1, s);
}

double bytes_of(const LayerProgram& p, const std::string& name) {
  double sum = 0;
  for (const auto* items : {&p.forward, &p.backward})
    for (const Item& i : *items)
      if (!i.is_comm && name == i.kernel.name) sum += i.kernel.bytes.as_double();
  return sum;
}

}  // namespace

TEST_CASE("weight gradients, and nothing else, are added to the buffers") {
  SplitConfig s = usual();
  s.accumulated = 4;
  int adding = 0;
  const LayerProgram p = moe_layer(s);
  for (const auto* items : {&p.forward, &p.backward})
    for (const Item& i : *items) {
      const bool product = i.kernel.family == KernelFamily::gemm || i.kernel.family == KernelFamily::grouped_gemm;
      if (i.is_comm || !product) continue;
      CAPTURE(i.kernel.name);
      const bool router = i.module == Module::router;  // too small to matter, and not a layer of the framework's
      CHECK(i.kernel.accumulated == (i.kernel.pass == Pass::weight_grad && !router ? 4 : 0));
      adding += i.kernel.accumulated > 0;
    }
  CHECK(adding == 4);  // qkv, output, expert up, expert down
}

TEST_CASE("experts on streams: one launch per local expert, three more for each FP8 cast") {
  SplitConfig s = usual();
  s.linear_dtype = Dtype::fp8;
  s.multi_stream_experts = true;
  std::set<std::int32_t> products, casts;
  const LayerProgram p = moe_layer(s);
  for (const auto* items : {&p.forward, &p.backward})
    for (const Item& i : *items) {
      if (i.is_comm) continue;
      if (i.kernel.family == KernelFamily::grouped_gemm) products.insert(i.kernel.launches);
      if (std::string(i.kernel.name).rfind("quantize", 0) == 0) casts.insert(i.kernel.launches);
    }
  CHECK(products == std::set<std::int32_t>{16});      // 128 experts over 8 ranks
  CHECK(casts == std::set<std::int32_t>{1, 3 * 16});  // of attention, and of experts
}

TEST_CASE("without permute fusion rows move by atomics: bytes of the gather curve per value as measured") {
  SplitConfig s = usual();
  const LayerProgram fused = moe_layer(s);
  s.permute_fusion = false;
  const LayerProgram torch = moe_layer(s);
  const double values = 4096.0 * 8 * 2048;
  CHECK(bytes_of(fused, "moe_permute_grad") == doctest::Approx(4 * values));
  CHECK(bytes_of(torch, "moe_permute") == doctest::Approx(4 * values));
  CHECK(bytes_of(torch, "moe_permute_grad") == doctest::Approx(41 * values));
  CHECK(bytes_of(torch, "moe_unpermute") == doctest::Approx(32 * values));
  CHECK(bytes_of(torch, "moe_unpermute_grad") == doctest::Approx(27 * values));
  CHECK(bytes_of(torch, "moe_sort_rows_grad") == bytes_of(fused, "moe_sort_rows_grad"));  // runs of rows, no atomics
}
