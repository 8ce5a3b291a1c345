// Rules that turn published settings into scenarios, and measured rates into step times.
#include <doctest/doctest.h>

#include <numeric>

#include "tools/validation/case_scenario.h"
#include "tools/validation/case_target.h"

using namespace k3sim;

namespace {

Case llama_case() {
  Case c;
  c.id = "test";
  c.task = "pretrain";
  c.gpu = "H100-SXM5-80GB";
  c.internode = "8x400Gb/s NDR InfiniBand per node (DGX H100 reference)";
  c.gpus = 64;
  c.model.layers = 32;
  c.model.hidden = 4096;
  c.model.ffn = 14336;
  c.model.heads = 32;
  c.model.kv_heads = 8;
  c.model.head_dim = 128;
  c.model.vocab = 128256;
  c.model.sequence = 8192;
  c.parallel.tp = 2;
  c.parallel.pp = 2;
  c.parallel.cp = 1;
  c.parallel.optimizer = "true";
  c.gbs = 128;
  c.mbs = 1;
  c.precision = "bf16";
  c.recompute = "none";
  return c;
}

}  // namespace

TEST_CASE("cases: a complete Megatron run needs no assumption") {
  const CaseScenario m = case_scenario(llama_case());
  REQUIRE(m.scenario.has_value());
  CHECK(m.assumptions.empty());
  CHECK(m.scenario->cluster.gpu == "h100_sxm");
  CHECK(m.scenario->cluster.nodes == 8);
  CHECK(m.scenario->parallel.dp == 16);
  CHECK(m.scenario->optimizer.zero == 1);
  // 8 x 400 Gbit/s per node of eight, 94 % payload: 47 GB/s per GPU.
  CHECK(m.scenario->cluster.nic_override->value() == doctest::Approx(47e9));
}

TEST_CASE("cases: what cannot be predicted says why") {
  Case lora = llama_case();
  lora.task = "lora";
  CHECK(case_scenario(lora).reason == "LoRA fine-tuning is not modelled");
  Case batch = llama_case();
  batch.gbs = 100;
  CHECK(case_scenario(batch).reason == "global batch 100 is not a multiple of dp 16");
  Case gpu = llama_case();
  gpu.gpu = "MI300X";
  CHECK(case_scenario(gpu).reason == "no hardware profile for GPU 'MI300X'");
  Case hybrid = llama_case();
  hybrid.model.hybrid = "mamba2+attention";
  CHECK_FALSE(case_scenario(hybrid).scenario.has_value());
}

TEST_CASE("cases: sharding texts become ZeRO stages and shard groups") {
  const auto optimizer = [](const char* text, int pp) {
    Case c = llama_case();
    c.parallel.optimizer = text;
    c.parallel.pp = pp;
    c.parallel.tp = 1;
    return case_scenario(c).scenario->optimizer;
  };
  CHECK(optimizer("FSDP FULL_SHARD", 1).zero == 3);
  CHECK(optimizer("FSDP2 (size 8)", 1).shard_group == 8);
  CHECK(optimizer("ZeRO-1 within 8 GPUs", 1).shard_group == 8);
  CHECK(optimizer("ZeRO-1 within 8 GPUs", 1).zero == 1);
  CHECK_FALSE(optimizer("FSDP SHARD_GRAD_OP", 1).reshard_after_forward);
  CHECK(optimizer("FSDP2 (ZeRO-3)", 2).zero == 1);  // kept gathered under pipeline parallelism
  CHECK(optimizer("False", 1).zero == 0);
}

TEST_CASE("cases: two layers fewer than the chunks hold leave the ends lighter") {
  Case c = llama_case();
  c.model.layers = 126;
  c.parallel.pp = 8;
  c.parallel.vpp = 8;
  c.gpus = 128;
  const CaseScenario m = case_scenario(c);
  REQUIRE(m.scenario.has_value());
  const std::vector<int>& stages = m.scenario->parallel.stage_layers;
  REQUIRE(stages.size() == 64);
  CHECK(stages.front() == 1);
  CHECK(stages.back() == 1);
  CHECK(stages[1] == 2);
}

TEST_CASE("cases: rates become step times, the step time itself first") {
  Case c = llama_case();
  c.measured.tokens_per_s_per_gpu = 1000;
  // 128 sequences x 8192 tokens over 64 GPUs at 1000 tokens/s each.
  CHECK(step_target(c)->step_time_s == doctest::Approx(128.0 * 8192 / 64 / 1000));
  c.measured.step_time_s = 12.5;
  CHECK(step_target(c)->step_time_s == 12.5);
  CHECK(step_target(c)->derived_from == "step_time_s");
}

TEST_CASE("cases: MFU is undone with the rule of its source") {
  Case c = llama_case();
  c.measured.mfu_pct = 50;
  c.measured.mfu_peak_tflops = 1000;
  c.nearest_convention = "full";
  c.gflops_full = 60;
  c.gflops_causal = 50;
  const double tokens = 128.0 * 8192;
  CHECK(step_target(c)->step_time_s == doctest::Approx(60e9 * tokens / 64 / 500e12));
  c.nearest_convention = "causal";
  CHECK(step_target(c)->step_time_s == doctest::Approx(50e9 * tokens / 64 / 500e12));
}

TEST_CASE("cases: nanotron's stages hold the blocks that its cost rule gives them") {
  CaseModel m = llama_case().model;
  m.layers = 16, m.hidden = 2048, m.ffn = 8192, m.heads = 32, m.head_dim = 64, m.vocab = 131072;
  // The head costs four layers; ten layers are exactly half of the whole, and a stage is full only beyond its share.
  CHECK(nanotron_stage_layers(m, 2) == std::vector<int>{11, 5});
  m.layers = 80, m.hidden = 8192, m.ffn = 28672, m.heads = 64, m.head_dim = 128;
  const std::vector<int> cut = nanotron_stage_layers(m, 16);
  CHECK(cut.front() == 6);
  CHECK(cut.back() == 3);
  CHECK(std::accumulate(cut.begin(), cut.end(), 0) == 80);
}

TEST_CASE("cases: torchtitan's tables since spring 2025 come from a stack with a compiled loss") {
  Case c = llama_case();
  c.framework = "torchtitan";
  c.date = "2024-12";
  CHECK(software_profile_name(c) == "torchtitan");
  c.date = "2025-06";
  CHECK(software_profile_name(c) == "torchtitan_2025");
}
