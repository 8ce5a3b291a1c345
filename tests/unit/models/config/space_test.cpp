// Search spaces: which values become axes, their order, ids that survive growth, and the way back to a scenario.
#include <doctest/doctest.h>

#include "models/config/data_files.h"
#include "models/config/scenario_loader.h"
#include "models/config/space.h"
#include "models/config/yaml_reader.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

const char* kSpace = R"(model: llama3_8b
cluster: {gpu: h100_sxm, nodes: 2}
parallel: {tp: {from: 1, to: 8, step: x2}, pp: [1, 2], dp: auto}
batch: {sequence: 4096, micro_batch: {from: 1, to: 3, step: +1}, global_sequences: 96}
)";

std::string problem_of(const std::string& text) {
  try {
    SearchSpace::parse(text, "space.yaml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no problem";
}

}  // namespace

TEST_CASE("space: lists and ranges are axes in file order, the last varies fastest") {
  const SearchSpace space = SearchSpace::parse(kSpace);
  REQUIRE(space.axes().size() == 3);
  CHECK(space.axes()[0].key == "parallel.tp");
  CHECK(space.axes()[0].values.size() == 4);
  CHECK(space.axes()[2].key == "batch.micro_batch");
  CHECK(space.size() == 4 * 2 * 3);
  CHECK(space.choice(0) == std::vector<int>{0, 0, 0});
  CHECK(space.choice(1) == std::vector<int>{0, 0, 1});
  CHECK(space.choice(23) == std::vector<int>{3, 1, 2});
}

TEST_CASE("space: a configuration's text reads back to the scenario, and the fast path agrees with it") {
  const SearchSpace space = SearchSpace::parse(kSpace);
  for (std::int64_t i = 0; i < space.size(); ++i) {
    Scenario fast = space.base();
    for (std::size_t a = 0; a < space.axes().size(); ++a) space.apply(a, space.choice(i)[a], fast);
    YamlDocument document = YamlDocument::parse(space.scenario_text(i));
    const Scenario slow = read_scenario_fields(document).scenario;
    CHECK(fast.parallel.tp == slow.parallel.tp);
    CHECK(fast.parallel.pp == slow.parallel.pp);
    CHECK(fast.batch.micro_batch == slow.batch.micro_batch);
  }
  CHECK(space.scenario(0).batch.global_sequences == 96);
}

TEST_CASE("space: an id does not change when other values join the axis") {
  const SearchSpace small = SearchSpace::parse(
      "model: llama3_8b\ncluster: {nodes: 1}\nparallel: {pp: [2]}\n"
      "batch: {global_sequences: 8}\n");
  const SearchSpace large = SearchSpace::parse(
      "model: llama3_8b\ncluster: {nodes: 1}\nparallel: {pp: [1, 2, 4]}\n"
      "batch: {global_sequences: 8}\n");
  CHECK(small.id(0) == large.id(1));
  CHECK(large.id(0) != large.id(1));
  CHECK(small.digest() != large.digest());
}

TEST_CASE("space: auto offers what can divide the thing it splits") {
  const SearchSpace space = SearchSpace::parse(
      "model: kimi_k3\ncluster: {nodes: 256}\nparallel: {ep: auto, dp: auto}\n"
      "schedule: {split_wgrad: auto}\nbatch: {global_tokens: 67108864, sequence: 8192}\n");
  REQUIRE(space.axes().size() == 2);
  CHECK(space.axes()[0].values.size() == 16);  // divisors of 896 = 2^7 x 7
  CHECK(space.axes()[1].values.size() == 2);
}

TEST_CASE("space: applied one after the other, variants leave nothing of each other") {
  const SearchSpace space = SearchSpace::parse(
      "model: llama3_8b\ncluster: {gpu: h100_sxm, nodes: 1}\nbatch: {sequence: 8192, global_sequences: 8}\n"
      "activation: {policy: selective}\n"
      "variants:\n  - {activation.offload: true}\n  - {activation.policy: full}\n  - {optimizer.zero: 2}\n");
  Scenario s = space.base();
  for (const std::int64_t index : {0, 1, 2, 0, 2, 1}) {
    space.apply(0, static_cast<int>(index), s);
    const Scenario whole = space.scenario(index);
    CHECK(s.activation.offload == whole.activation.offload);
    CHECK(s.activation.policy == whole.activation.policy);
    CHECK(s.optimizer.zero == whole.optimizer.zero);
  }
}

TEST_CASE("space: variants set several keys together") {
  const SearchSpace space = SearchSpace::parse(
      "model: llama3_8b\ncluster: {nodes: 1}\nbatch: {global_sequences: 8}\n"
      "variants:\n  - {parallel: {tp: 2, pp: 2}}\n  - {parallel.tp: 4, schedule.name: gpipe}\n");
  REQUIRE(space.size() == 2);
  CHECK(space.scenario(0).parallel.pp == 2);
  CHECK(space.scenario(1).parallel.tp == 4);
  CHECK(space.scenario(1).schedule.name == "gpipe");
}

TEST_CASE("space: lists of keys that hold lists are values, lists of lists are axes") {
  const std::string head = "model: llama3_8b\ncluster: {nodes: 1}\nbatch: {global_sequences: 8}\n";
  CHECK(SearchSpace::parse(head + "activation: {recompute: [norm]}\n").size() == 1);
  CHECK(SearchSpace::parse(head + "activation: {recompute: [[norm], [norm, activation], []]}\n").size() == 3);
}

TEST_CASE("space: the model may be an axis") {
  const SearchSpace space = SearchSpace::parse(
      "model: [llama3_8b, llama3_70b]\ncluster: {nodes: 1}\n"
      "batch: {global_sequences: 8}\n");
  Scenario s = space.base();
  CHECK(s.model.layers.size() == 32);
  space.apply(0, 1, s);
  CHECK(s.model.layers.size() == 80);
}

TEST_CASE("space: mistakes are reported with the key and what would be right") {
  const std::string head = "model: llama3_8b\ncluster: {nodes: 1}\nbatch: {global_sequences: 8}\n";
  CHECK(problem_of(head + "parallel: {tp: {from: 8, to: 1, step: x2}}\n").find("from 8 is above to 1") !=
        std::string::npos);
  CHECK(problem_of(head + "parallel: {tp: {from: 1, to: 8, step: 2}}\n").find("step '2'") != std::string::npos);
  CHECK(problem_of(head + "parallel: {tq: [1, 2]}\n").find("unknown key") != std::string::npos);
  CHECK(problem_of(head + "parallel: {tp: [1, two]}\n").find("'two'") != std::string::npos);
  CHECK(problem_of(head + "batch2: 3\n").find("space.yaml:4:1") != std::string::npos);
  CHECK(problem_of(head + "parallel: {tp: []}\n").find("empty") != std::string::npos);
  CHECK(problem_of(head + "variants: [{parallel.tpp: 2}]\n").find("unknown key") != std::string::npos);
}

TEST_CASE("space: shipped scenarios are spaces of one configuration") {
  CHECK(SearchSpace::load(data_path("scenarios/k3_2048_h800/scenario.yaml")).size() == 1);
}
