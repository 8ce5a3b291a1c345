// Launch scripts: shell constructs, spellings of arguments, layout strings, TOML.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tools/import/imported_scenario.h"
#include "tools/import/pipeline_layout.h"
#include "tools/import/shell_script.h"
#include "tools/import/toml_reader.h"

using namespace k3sim;

namespace {

std::string joined(const std::string& script, const std::map<std::string, std::string>& environment = {}) {
  std::string out;
  for (const auto& command : read_shell_script(script, environment).commands)
    for (const ShellWord& w : command) out += w.text + " ";
  return out;
}

ImportedScenario import(const std::string& text) {
  LaunchArguments a = read_launch(text, "launch.sh", {});
  return import_launch(a, {});
}

const std::string kModel =
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 1024 --micro-batch-size 1 --global-batch-size 32 --bf16 ";

}  // namespace

TEST_CASE("shell: arrays, defaults, arithmetic and conditions expand as in bash") {
  CHECK(joined("A=(--x 1 # note\n --y \"2 3\")\nrun \"${A[@]}\"") == "run --x 1 --y 2 3 ");
  CHECK(joined("N=${N:-4}; run $(($N*2+1)) ${M:-none}") == "run 9 none ");
  CHECK(joined("N=${N:-4}; run $N", {{"N", "7"}}) == "run 7 ");
  CHECK(joined("T=2\nif [ $T -gt 1 ]; then O=--sp; else O=--no; fi\nrun $O") == "run --sp ");
  CHECK(joined("A=x\nif [[ $A == y ]]; then B=1\nelif [ \"$A\" = x ]; then B=2\nfi\nrun $B") == "run 2 ");
  CHECK(joined("X=\"--a 1 \\\n  --b 2\"\nrun $X") == "run --a 1 --b 2 ");
  CHECK(joined("cat <<EOT > f\nnot --a command\nEOT\nrun 1") == "cat > f run 1 ");
}

TEST_CASE("shell: an unknown variable inside a string is found where the argument is") {
  const ShellScript s = read_shell_script("ARGS=\"--a $UNKNOWN --b 2\"\nrun $ARGS");
  REQUIRE(s.commands.size() == 1);
  REQUIRE(s.commands[0].size() == 5);
  CHECK(s.commands[0][2].unknown == std::vector<std::string>{"UNKNOWN"});
  CHECK(s.commands[0][4].text == "2");
}

TEST_CASE("layout strings give the decoder layers of every stage") {
  CHECK(*parse_pipeline_layout("Et*2|(tt|)*3t|tmL") == std::vector<int>{2, 2, 2, 2, 1, 1});
  CHECK(*parse_pipeline_layout("Et|(tt|)*30mL") == [] {
    std::vector<int> v(32, 2);
    v.front() = 1, v.back() = 0;
    return v;
  }());
  CHECK_FALSE(parse_pipeline_layout("Et|x").has_value());
  CHECK_FALSE(parse_pipeline_layout("(t|").has_value());
}

TEST_CASE("layer patterns are evaluated") {
  CHECK(*parse_layer_pattern("([0]*2+[1]*3)") == std::vector<int>{0, 0, 1, 1, 1});
  CHECK(*parse_layer_pattern("[0,1]*2") == std::vector<int>{0, 1, 0, 1});
  CHECK_FALSE(parse_layer_pattern("2").has_value());
}

TEST_CASE("all spellings of an argument are the same argument") {
  for (const char* spelling : {"--tensor-model-parallel-size 4", "--tensor-model-parallel-size=4",
                               "--tensor_model_parallel_size 4", "--tensor-model-parallel 4"})
    CHECK(import(kModel + spelling).scenario.parallel.tp == 4);
}

TEST_CASE("Megatron's defaults: biases, layer norm, learned positions, tied embeddings, padded vocabulary") {
  const ImportedScenario i = import(kModel + "--vocab-size 50257");
  CHECK(i.scenario.model.vocab == 50304);
  CHECK(i.scenario.model.tied_embeddings);
  CHECK(i.scenario.model.learned_positions);
  CHECK(i.scenario.model.norm == NormKind::layer_norm);
  CHECK(i.scenario.model.layers[0].ffn.intermediate == 2048);
  CHECK(i.scenario.model.layers[0].ffn.bias);
  CHECK(i.scenario.cluster.gpus() == 16);
  const ImportedScenario gated = import(kModel + "--swiglu");
  CHECK(gated.scenario.model.layers[0].ffn.intermediate == 1344);  // 64 floor(4 x 512 x 2/3 / 64)
}

TEST_CASE("the last of repeated arguments counts, and nothing is dropped silently") {
  const ImportedScenario i = import(kModel + "--global-batch-size 64 --foo-bar 3 --lr 1e-4");
  CHECK(i.scenario.batch.global_sequences == 64);
  REQUIRE(i.unknown.size() == 1);
  CHECK(i.unknown[0] == "--foo-bar 3 (line 1)");
  CHECK(std::find(i.irrelevant.begin(), i.irrelevant.end(), "lr") != i.irrelevant.end());
}

TEST_CASE("uneven first and last stages become a list of layers") {
  const ImportedScenario i = import(kModel +
                                    "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
                                    "--decoder-last-pipeline-num-layers 1");
  CHECK(i.scenario.parallel.stage_layers == std::vector<int>{1, 3, 3, 1});
}

TEST_CASE("DeepSpeed: experts in every second layer, stage of ZeRO from its configuration") {
  const ImportedScenario i = import("cat <<EOT > c.json\n{\"zero_optimization\": {\"stage\": 2}}\nEOT\n" + kModel +
                                    "--deepspeed --num-experts 16 --moe-expert-parallel-size 8");
  CHECK(i.scenario.optimizer.zero == 2);
  CHECK_FALSE(i.scenario.model.layers[0].ffn.is_moe());
  CHECK(i.scenario.model.layers[1].ffn.experts == 16);
  CHECK(i.scenario.model.layers[1].ffn.topk == 1);
}

TEST_CASE("TOML: tables, arrays, comments and errors with their line") {
  const auto v = read_toml("a = 1_000 # c\n[x.y]\nb = [\"p\", 'q']\nc = true\n", "f.toml");
  CHECK(v.at("a").values[0] == "1_000");
  CHECK(v.at("x.y.b").values == std::vector<std::string>{"p", "q"});
  CHECK(v.at("x.y.c").line == 4);
  CHECK_THROWS_AS(read_toml("a = 1\na = 2\n", "f.toml"), ConfigError);
  CHECK_THROWS_AS(read_toml("[t\n", "f.toml"), ConfigError);
  CHECK_THROWS_AS(read_toml("a = {b = 1}\n", "f.toml"), ConfigError);
}

TEST_CASE("wrong numbers and missing sizes are refused with the argument") {
  CHECK_THROWS_WITH_AS(import("pretrain_gpt.py --num-layers 4 --hidden-size x --num-attention-heads 8"),
                       doctest::Contains("--hidden-size: 'x' is no number"), ConfigError);
  CHECK_THROWS_AS(import("pretrain_gpt.py --num-layers 4"), ConfigError);
  CHECK_THROWS_AS(read_launch("just text\n", "f", {}), ConfigError);
}
