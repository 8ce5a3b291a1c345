// Events of every layer kind under every policy: nothing is freed twice or before it exists, everything is freed by the
// end of backward, and without a policy the peak is the closed form of LayerGraph.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "models/config/model_loader.h"
#include "models/memory/layer_events.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

SplitConfig split_of(int tp, int fusion) {
  SplitConfig s;
  s.tokens = s.sequence = 4096;
  s.tp = tp;
  s.sequence_parallel = tp > 1;
  s.fusion = fusion;
  s.ep = 8;
  return s;
}

// Replays events on the set of live tensors; returns what is wrong, or "".
std::string replay(const LayerEvents& e, const MemoryEvents& events, std::set<int>& live) {
  for (const MemoryEvent& m : events) {
    const std::string name = fmt::format("{} {}", int(m.tensor), e.tensors[m.tensor].name);
    if (m.alloc && !live.insert(m.tensor).second) return "allocated twice: " + name;
    if (!m.alloc && live.erase(m.tensor) == 0) return "freed while not alive: " + name;
  }
  return "";
}

std::string names(const LayerEvents& e, const std::set<int>& live) {
  std::string out;
  for (int t : live) out += fmt::format("{} {}; ", t, e.tensors[static_cast<std::size_t>(t)].name);
  return out;
}

void check_layer(const Liveness& liveness, const StoragePolicy& policy) {
  const LayerEvents e = layer_events(liveness, policy);
  for (bool split : {false, true}) {
    std::set<int> live;
    if (e.tensors[kLayerInput].bytes.count() > 0) live.insert(kLayerInput);
    REQUIRE(replay(e, e.forward.events, live) == "");
    CHECK(live.erase(kLayerOutput) == 1);  // the reader frees it
    live.insert(kOutputGradient);
    const PassEvents& first = split ? e.input_grad : e.backward;
    REQUIRE(replay(e, first.events, live) == "");
    if (first.input_gradient >= 0) CHECK(live.count(first.input_gradient) == 1);
    if (split) REQUIRE(replay(e, e.weight_grad.events, live) == "");
    if (first.input_gradient >= 0) live.erase(first.input_gradient);
    CHECK(names(e, live) == "");
  }
}

std::vector<StoragePolicy> policies() {
  std::vector<StoragePolicy> out(6);
  out[1].full = true;
  out[2].modules[static_cast<std::size_t>(Module::norm)] = true;
  out[2].modules[static_cast<std::size_t>(Module::activation)] = true;
  out[2].modules[static_cast<std::size_t>(Module::dispatch)] = true;
  out[3] = out[2];
  out[3].fp8 = out[3].offload = true;
  out[4].half_products = true;
  out[5].full = out[5].offload = true;
  return out;
}

}  // namespace

TEST_CASE("Every layer kind under every policy frees each tensor once, whole or split") {
  for (const char* name : {"kimi_k3", "deepseek_v3", "llama3_8b", "gpt_1_7b"}) {
    const ModelSpec model = load_model(name);
    for (int fusion : {0, 1, 2})
      for (int tp : {1, 2}) {
        SplitConfig split = split_of(tp, fusion);
        split.dropout = fusion == 1 && tp == 1;
        split.flash_attention = tp > 1;
        if (fusion == 2) split.linear_dtype = Dtype::fp8_block;
        for (std::size_t i : {std::size_t{0}, model.layers.size() - 1})
          for (const StoragePolicy& p : policies()) {
            CAPTURE(name);
            CAPTURE(fusion);
            CAPTURE(tp);
            CAPTURE(i);
            check_layer(*layer_program(model, i, split).liveness, p);
          }
        for (const StoragePolicy& p : policies()) {
          check_layer(*head_program(model, split).liveness, p);
          check_layer(*embedding_program(model, split).liveness, p);
        }
      }
  }
}

TEST_CASE("Without a policy the peak of both passes is kept tensors plus the program's workspace") {
  for (const char* name : {"kimi_k3", "deepseek_v3", "llama3_8b"}) {
    const ModelSpec model = load_model(name);
    for (int fusion : {0, 1, 2})
      for (std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
        const LayerProgram p = layer_program(model, i, split_of(1, fusion));
        const LayerEvents e = layer_events(*p.liveness, {});
        Bytes kept;
        for (const SavedTensor& t : p.saved) kept += t.bytes;
        // What is alive before a pass: the layer input (kept, or passed on), the output and its gradient.
        const Liveness& l = *p.liveness;
        const Bytes in = l.operations[0].output, out = l.operations[static_cast<std::size_t>(l.output)].output;
        const Bytes forward = e.forward.peak + in;
        const Bytes backward = Bytes(e.forward.change) + in + e.backward.peak + out;
        const double events = std::max(forward, backward).as_double(), closed = (kept + p.workspace).as_double();
        CAPTURE(name);
        CAPTURE(fusion);
        CAPTURE(i);
        // The closed form of the forward pass leaves out the layer's input.
        CHECK(events <= closed + in.as_double());
        CHECK(events >= closed * 0.95);
      }
  }
}

TEST_CASE("What waits for FP8 weight gradients are the quantised output gradients of the layer's products") {
  const ModelSpec model = load_model("deepseek_v3");
  SplitConfig split = split_of(1, 1);
  split.linear_dtype = Dtype::fp8_block;
  const LayerEvents e = layer_events(*layer_program(model, 10, split).liveness, {});
  Bytes narrow;
  for (const MemoryEvent& m : e.weight_grad.events) {
    const EventTensor& t = e.tensors[m.tensor];
    if (!m.alloc && t.name == std::string("gradient_fp8")) narrow += t.bytes;
  }
  // Outputs per token: q_a, q_b, kv_a, kv_b, out; shared gate and up, down; eight experts' gate and up, down.
  const double width = 1536 + 128 * 192 + 576 + 128 * 256 + 7168 + 4096 + 7168 + 8 * (4096 + 7168);
  CHECK(narrow.as_double() == doctest::Approx(4096 * width * (1.0 + 4.0 / 128.0)));
}
