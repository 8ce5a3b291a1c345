// The zoo loads, and mistakes in a model file are reported with place, numbers and suggestion.
#include <doctest/doctest.h>

#include <string>

#include "models/config/model_loader.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

const std::string kGood = R"(name: tiny
source: "test"
hidden: 64
vocab: 1000
max_positions: 128
attention:
  full: {kind: mha, heads: 4, kv_heads: 2, qk_dim: 16}
ffn:
  dense: {activation: swiglu, intermediate: 256}
  moe: {activation: swiglu, experts: 8, topk: 2, expert_intermediate: 32}
layers:
  count: 3
  attention: full
  ffn: moe
  exceptions:
    - {layers: [1], ffn: dense}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string problems_of(const std::string& yaml) {
  try {
    parse_model(yaml, "tiny.yaml");
  } catch (const ConfigError& e) {
    std::string all;
    for (const Problem& p : e.problems()) all += to_string(p) + "\n";
    return all;
  }
  return "accepted";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("model loader: every zoo file loads under its own name and survives a round trip") {
  CHECK(known_models().size() >= 24);
  for (const std::string& name : known_models()) {
    CAPTURE(name);
    const ModelSpec m = load_model(name);
    CHECK(m.name == name);
    CHECK_FALSE(m.source.empty());
    CHECK(model_to_yaml(parse_model(model_to_yaml(m), "copy")) == model_to_yaml(m));
  }
}

TEST_CASE("model loader: exceptions replace the usual entry of their layers only") {
  const ModelSpec m = parse_model(kGood, "tiny.yaml");
  REQUIRE(m.layers.size() == 3);
  CHECK_FALSE(m.layers[0].ffn.is_moe());
  CHECK(m.layers[1].ffn.is_moe());
  CHECK(m.layers[0].attention.v_dim == 16);  // defaults to qk_dim
}

TEST_CASE("model loader: an unknown zoo name gets a suggestion") {
  try {
    load_model("kimi_k33");
    FAIL("accepted");
  } catch (const ConfigError& e) {
    CHECK(mentions(to_string(e.problems()[0]), "did you mean 'kimi_k3'?"));
  }
}

TEST_CASE("model loader: mistakes carry line and advice") {
  CHECK(problems_of(kGood) == "accepted");
  CHECK(mentions(problems_of(replaced(kGood, "hidden: 64", "hiden: 64")), "did you mean 'hidden'?"));
  CHECK(mentions(problems_of(replaced(kGood, "kind: mha", "kind: mhaa")), "tiny.yaml:7:"));
  CHECK(mentions(problems_of(replaced(kGood, "kind: mha", "kind: mhaa")), "did you mean 'mha'?"));
  CHECK(mentions(problems_of(replaced(kGood, "ffn: moe", "ffn: mo")), "no entry 'mo' is defined"));
  CHECK(mentions(problems_of(replaced(kGood, "layers: [1]", "layers: [4]")), "layer 4 is outside 1..3"));
  CHECK(mentions(problems_of(replaced(kGood, "topk: 2", "topk: 9")), "topk 9 of 8 experts"));
  CHECK(mentions(problems_of(replaced(kGood, "heads: 4", "heads: 5")), "5 heads are not a multiple of 2 kv_heads"));
  CHECK(mentions(problems_of(replaced(kGood, "intermediate: 256", "intermediate: -256")), "must not be negative"));
  CHECK(mentions(problems_of(replaced(kGood, "count: 3", "count: 0")), "must be between 1 and 10000"));
}

TEST_CASE("model loader: all mistakes of a file are reported at once") {
  const std::string all = problems_of(replaced(replaced(kGood, "vocab: 1000", "vocab: many"), "count: 3", "cuont: 3"));
  CHECK(mentions(all, "vocab"));
  CHECK(mentions(all, "layers.count"));
  CHECK(mentions(all, "cuont"));
}
