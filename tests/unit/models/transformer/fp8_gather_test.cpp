// FP8 with sequence parallelism: what is quantised before the gather and what travels.
#include <doctest/doctest.h>

#include <string>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

struct Volumes {
  double quantized = 0, gathered = 0, scattered = 0;  // bytes of quantising kernels and of both collectives
};

Volumes volumes(Dtype dtype, bool fp8_gather) {
  SplitConfig s;
  s.sequence = s.tokens = 8192;
  s.tp = 4;
  s.sequence_parallel = true;
  s.linear_dtype = dtype;
  s.fp8_gather = fp8_gather;
  const LayerProgram p = layer_program(load_model("llama3_70b"), 1, s);
  Volumes v;
  for (const auto* items : {&p.forward, &p.backward})
    for (const Item& i : *items) {
      const std::string name = i.is_comm ? "" : i.kernel.name;
      if (name == "quantize_input" || name == "quantize_grad") v.quantized += i.kernel.bytes.as_double();
      if (i.is_comm && i.comm.kind == CommKind::all_gather) v.gathered += i.comm.bytes.as_double();
      if (i.is_comm && i.comm.kind == CommKind::reduce_scatter) v.scattered += i.comm.bytes.as_double();
    }
  return v;
}

}  // namespace

TEST_CASE("fp8 shards are quantised before the gather: half the bytes travel, sums stay in BF16") {
  const Volumes late = volumes(Dtype::fp8, false), early = volumes(Dtype::fp8, true);
  CHECK(early.gathered == doctest::Approx(late.gathered / 2));
  CHECK(early.scattered == late.scattered);
  // By hand, 4.1 bytes per element: forward and backward, attention and FFN enter and leave with 8192 x 8192 elements,
  // of which a rank quantises a quarter; what is split over tp anyway (the rest) does not change.
  const double full = 4 * 4.1 * 8192.0 * 8192.0;
  CHECK(late.quantized - early.quantized == doctest::Approx(full * 3 / 4).epsilon(1e-6));
}

TEST_CASE("without FP8 nothing is quantised and the gathers carry BF16") {
  const Volumes bf16 = volumes(Dtype::bf16, false);
  CHECK(bf16.quantized == 0);
  // Four gathers of 8192 x 8192: attention and FFN, forward and backward, and both kept inputs once more.
  CHECK(bf16.gathered == doctest::Approx(6 * 2.0 * 8192 * 8192));
}
