// Tensors kept for backward against published closed forms and inventories.
// Source: arXiv:2205.05198 sections 4.1-4.3; k3-facts sections 1.2, 1.5, 4.7.
#include <doctest/doctest.h>

#include <string>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

std::int64_t saved(const LayerProgram& p) {
  std::int64_t sum = 0;
  for (const SavedTensor& t : p.saved) sum += t.bytes.count();
  return sum;
}

std::int64_t saved(const LayerProgram& p, const std::string& name) {
  std::int64_t sum = 0;
  for (const SavedTensor& t : p.saved) sum += t.name == name ? t.bytes.count() : 0;
  return sum;
}

SplitConfig gpt_split(std::int64_t s, std::int64_t b) {
  SplitConfig split;
  split.tokens = s * b;
  split.sequence = s;
  split.micro_batch = b;
  split.flash_attention = false;
  split.dropout = true;
  return split;
}

std::int64_t mixes_of(const ModelSpec& m, std::int64_t& reads) {
  SplitConfig split;
  split.tokens = 64;
  split.sequence = 64;
  std::int64_t mixes = 0;
  auto count = [&](const LayerProgram& p) {
    for (const Item& i : p.forward) {
      if (std::string(i.name) != "attnres_mix") continue;
      ++mixes;
      reads += i.kernel.bytes.count() / (64 * m.hidden * 2) - 1;
    }
  };
  for (std::size_t l = 0; l < m.layers.size(); ++l) count(layer_program(m, l, split));
  count(head_program(m, split));
  return mixes;
}

}  // namespace

TEST_CASE("saved: a GPT layer keeps s b h (34 + 5 a s / h) bytes") {
  const ModelSpec m = load_model("gpt3_175b");
  const std::int64_t s = 2048, b = 1, h = m.hidden, a = 96;
  const LayerProgram p = layer_program(m, 5, gpt_split(s, b));
  CHECK(saved(p) == s * b * h * 34 + 5 * a * s * s * b);
}

TEST_CASE("saved: tensor parallelism divides all but 10 s b h, sequence parallelism the rest too") {
  const ModelSpec m = load_model("gpt3_175b");
  const std::int64_t s = 2048, b = 2, h = m.hidden, a = 96, t = 8;
  SplitConfig split = gpt_split(s, b);
  split.tp = static_cast<int>(t);
  CHECK(saved(layer_program(m, 5, split)) == s * b * h * 10 + s * b * h * 24 / t + 5 * a * s * s * b / t);
  split.sequence_parallel = true;
  CHECK(saved(layer_program(m, 5, split)) == (s * b * h * 34 + 5 * a * s * s * b) / t);
}

TEST_CASE("saved: selective recompute of core attention leaves 34 s b h, the rest is rebuilt from q, k and v") {
  const ModelSpec m = load_model("gpt3_175b");
  std::int64_t left = 0;
  for (const SavedTensor& t : layer_program(m, 5, gpt_split(2048, 1)).saved) {
    if (!(t.recomputable && t.module == Module::core_attention)) left += t.bytes.count();
  }
  CHECK(left == 34 * 2048 * m.hidden);
}

TEST_CASE("saved: the first kept tensor of a layer is its input, which full recompute starts from") {
  for (const char* name : {"kimi_k3", "deepseek_v3", "llama3_8b", "gpt3_175b"}) {
    const ModelSpec m = load_model(name);
    SplitConfig split;
    split.tokens = split.sequence = 1024;
    for (std::size_t l : {0U, 1U, 3U, 12U}) {
      const LayerProgram p = layer_program(m, l, split);
      CHECK(p.saved.front().bytes.count() == 1024 * m.hidden * 2);
      CHECK_FALSE(p.saved.front().recomputable);
    }
  }
}

TEST_CASE("saved: the output layer keeps 4 s b (h + v) bytes") {
  const ModelSpec m = load_model("gpt3_175b");
  CHECK(saved(head_program(m, gpt_split(2048, 1))) == 4 * 2048 * (m.hidden + m.vocab));
}

TEST_CASE("saved: K3 inventory per token and layer") {
  const ModelSpec m = load_model("kimi_k3");
  SplitConfig split;
  split.tokens = 8192;
  split.sequence = 8192;
  const std::int64_t t = split.tokens;
  const LayerProgram kda = layer_program(m, 1, split), mla = layer_program(m, 3, split);
  const std::int64_t head_row = 96 * 128 * 2;
  for (const char* name : {"kda.q_pre", "kda.k_pre", "kda.v_pre", "kda.q_conv", "kda.k_conv", "kda.v_conv", "kda.decay",
                           "attn.gate", "attn.gate_input", "attn.out_input"}) {
    CAPTURE(name);
    CHECK(saved(kda, name) == t * head_row);
  }
  CHECK(saved(kda, "kda.aqk_akk") == 2 * t * 12288);
  // FLA chunk_kda, default recompute: 1,292 B per token and head.
  const std::int64_t core = saved(kda, "kda.q_conv") + saved(kda, "kda.k_conv") + saved(kda, "kda.inverse_norms") +
                            saved(kda, "kda.v_conv") + saved(kda, "kda.decay") + saved(kda, "kda.beta") +
                            saved(kda, "kda.aqk_akk");
  CHECK(core == t * 96 * 1292);
  CHECK(saved(mla, "attn.q") == t * 36864);
  CHECK(saved(mla, "attn.k") == t * 36864);
  CHECK(saved(mla, "attn.v") == t * 24576);
  CHECK(saved(mla, "attn.out") == t * 24576);
  CHECK(saved(mla, "attn.gate") == t * 24576);
  CHECK(saved(kda, "moe.latent") == t * 7168);
  CHECK(saved(kda, "moe.dispatched") == t * 114688);
  CHECK(saved(kda, "moe.expert_up") == t * 196608);
  CHECK(saved(kda, "moe.expert_act") == t * 98304);
  CHECK(saved(kda, "moe.shared_up") == t * 24576);
  CHECK(saved(kda, "moe.shared_act") == t * 12288);
  split.fusion = 0;  // only eager stacks keep the expert outputs
  CHECK(saved(layer_program(m, 1, split), "moe.expert_out") == t * 114688);
}

TEST_CASE("attnres: 186 mixes read 1,002 source rows, and what is kept equals a plain residual") {
  const ModelSpec m = load_model("kimi_k3");
  std::int64_t reads = 0;
  CHECK(mixes_of(m, reads) == 186);
  CHECK(reads == 1002);
  ModelSpec plain = m;
  plain.attnres_block = 0;
  SplitConfig split;
  split.tokens = 1024;
  split.sequence = 1024;
  for (std::size_t l : {1U, 13U, 40U})
    CHECK(saved(layer_program(m, l, split)) == saved(layer_program(plain, l, split)));
}

TEST_CASE("attnres: the boundary carries the running sum and the stored rows") {
  const ModelSpec m = load_model("kimi_k3");
  SplitConfig split;
  split.tokens = 8192;
  split.sequence = 8192;
  const std::int64_t row = 8192 * 7168 * 2;
  CHECK(layer_program(m, 0, split).boundary.count() == 2 * row);
  CHECK(layer_program(m, 11, split).boundary.count() == 2 * row);
  CHECK(layer_program(m, 30, split).boundary.count() == 4 * row);  // observed at the PP3 boundary after 31 layers
  CHECK(layer_program(m, 61, split).boundary.count() == 7 * row);
  CHECK(layer_program(m, 92, split).boundary.count() == 9 * row);
}
