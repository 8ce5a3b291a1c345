// Hugging Face config.json of every supported family, and what wrong ones are told.
// Source: fixtures in tests/data/hf, written from the public configuration classes and released dimensions.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "models/config/hf_config.h"
#include "models/config/model_loader.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

std::string fixture(const std::string& name) {
  return std::string(K3SIM_TEST_DATA) + "/hf/" + name + ".json";
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// All problems of a bad configuration in one string.
std::string problems_of(const std::string& json) {
  try {
    parse_hf_config(json, "config.json");
  } catch (const ConfigError& e) {
    std::string all;
    for (const Problem& p : e.problems()) all += to_string(p) + "\n";
    return all;
  }
  return "accepted";
}

// The same architecture in a canonical form, without name and source.
std::string shape_of(ModelSpec m) {
  m.name = m.source = "x";
  return model_to_yaml(m);
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("hf-config: released configurations give the zoo models") {
  for (const char* name :
       {"llama3_8b", "mixtral_8x7b", "qwen3_30b_a3b", "deepseek_v3", "kimi_k2", "kimi_linear_48b", "kimi_k3"}) {
    CAPTURE(name);
    ModelSpec zoo = load_model(name);
    // The release has no MTP layer, training has one (k3-facts section 6).
    if (zoo.name == "kimi_k3") zoo.mtp_layers = 0;
    CHECK(shape_of(load_hf_config(fixture(name))) == shape_of(zoo));
  }
}

TEST_CASE("hf-config: a dense qwen3 has per-head norms and a head size of its own") {
  const ModelSpec m = load_model(fixture("qwen3_32b"));
  CHECK(m.layers.size() == 64);
  CHECK(m.layers[0].attention.qk_norm);
  CHECK(m.layers[0].attention.qk_dim == 128);
  CHECK(m.layers[0].attention.heads * 128 != m.hidden);
  CHECK(m.layers[0].attention.window == 0);
}

TEST_CASE("hf-config: what import writes, the loader reads back") {
  for (const char* name : {"kimi_k3", "kimi_linear_48b", "deepseek_v3", "qwen3_30b_a3b"}) {
    const ModelSpec m = load_hf_config(fixture(name));
    CHECK(model_to_yaml(parse_model(model_to_yaml(m), "copy.yaml")) == model_to_yaml(m));
  }
}

TEST_CASE("hf-config: every missing size is named, all at once") {
  const std::string json = replaced(replaced(text_of(fixture("deepseek_v3")), "\"kv_lora_rank\"", "\"kv_rank\""),
                                    "\"moe_intermediate_size\"", "\"moe_size\"");
  const std::string all = problems_of(json);
  CHECK(mentions(all, "kv_lora_rank: is missing"));
  CHECK(mentions(all, "moe_intermediate_size: is missing"));
  CHECK(mentions(all, "config.json"));
}

TEST_CASE("hf-config: unknown architectures get a suggestion, wrong types their value") {
  const std::string llama = text_of(fixture("llama3_8b"));
  CHECK(mentions(problems_of(replaced(llama, "\"model_type\": \"llama\"", "\"model_type\": \"lama\"")),
                 "did you mean 'llama'?"));
  CHECK(mentions(problems_of(replaced(llama, "\"model_type\": \"llama\"", "\"model_type\": \"gpt_oss\"")),
                 "'gpt_oss' is not supported"));
  CHECK(mentions(problems_of(replaced(llama, "\"model_type\": \"llama\"", "\"kind\": \"llama\"")),
                 "model_type: is missing"));
  CHECK(mentions(problems_of(replaced(llama, "\"hidden_size\": 4096", "\"hidden_size\": \"4096\"")),
                 "hidden_size: is \"4096\""));
  CHECK(mentions(problems_of(replaced(llama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5")),
                 "not a multiple of 5 kv_heads"));
  CHECK(mentions(problems_of(replaced(llama, "\"silu\"", "\"gelu\"")), "'gelu' is not supported"));
  CHECK(mentions(problems_of("[1, 2"), "not a JSON object"));
}

TEST_CASE("hf-config: layer lists of hybrid models must cover every layer once") {
  const std::string json = text_of(fixture("kimi_linear_48b"));
  CHECK(mentions(problems_of(replaced(json, "\"num_hidden_layers\": 27", "\"num_hidden_layers\": 28")),
                 "linear_attn_config.kda_layers: layer 28 is in neither list"));
  CHECK(mentions(problems_of(replaced(json, "\"num_hidden_layers\": 27", "\"num_hidden_layers\": 26")),
                 "layer 27 is outside 1..26"));
  CHECK(mentions(problems_of(replaced(text_of(fixture("kimi_k3")), "\"text_config\"", "\"language_config\"")),
                 "text_config: is missing"));
}
