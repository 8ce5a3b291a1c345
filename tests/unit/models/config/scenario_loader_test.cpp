// Loading scenarios: the shipped ones as they are, defaults, overrides, and how mistakes are reported.
#include "models/config/scenario_loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/config/yaml_reader.h"

using namespace k3sim;

namespace {

constexpr const char* kDense =
    "model: llama3_8b\ncluster: {nodes: 2}\nparallel: {tp: 2, pp: 2}\nbatch: {sequence: 8192, global_sequences: 64}\n";

Scenario read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  YamlDocument document = YamlDocument::parse(text, "s.yaml");
  for (const std::string& assignment : overrides) document.set("--set", assignment);
  return read_scenario(document);
}

std::string problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "none";
}

// A malformed file carries its overrides and the expected messages in its own first lines.
struct Malformed {
  std::vector<std::string> overrides;
  std::string expected;
};

Malformed read_header(const std::filesystem::path& file) {
  Malformed out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && line.starts_with("#");) {
    if (line.starts_with("# set: ")) out.overrides.push_back(line.substr(7));
    if (line.starts_with("# expect: ")) out.expected += line.substr(10) + "\n";
  }
  return out;
}

// The messages without "error: " and without the file's name, which differs from machine to machine.
std::string without_file(const std::string& messages, const std::string& file) {
  std::string out;
  std::istringstream lines(messages);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(std::string("error: ").size());
    if (line.starts_with(file + ":")) line = line.substr(file.size() + 1);
    out += line.substr(line.find_first_not_of(' ')) + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("scenario: the K3 scenario loads as the specification prints it") {
  const Scenario s = load_scenario(K3SIM_SOURCE_DIR "/scenarios/k3_2048_h800/scenario.yaml");
  CHECK(s.name == "k3_2048_h800");
  CHECK(s.model.name == "kimi_k3");
  CHECK(s.cluster.gpus() == 2048);
  CHECK(s.parallel.pp == 16);
  CHECK(s.parallel.dp == 0);
  CHECK(s.batch.global_tokens == 67'108'864);
  CHECK(s.schedule.split_wgrad);
  CHECK(s.moe.dispatcher == "moonep");
  CHECK(s.moe.routing.source == "lognormal");
  CHECK(s.optimizer.gradient_shards == "cpu");
}

TEST_CASE("scenario: every shipped scenario loads, by folder, by file and without its folder's name") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(K3SIM_SOURCE_DIR "/scenarios")) {
    if (!std::filesystem::exists(entry.path() / "scenario.yaml")) continue;
    ++count;
    CHECK(load_scenario(entry.path().string()).name == entry.path().filename().string());
    CHECK(find_scenario_file(entry.path().filename().string()).ends_with("scenario.yaml"));
  }
  CHECK(count >= 2);
}

TEST_CASE("scenario: absent keys have the documented defaults") {
  const Scenario s = read(kDense), defaults;
  CHECK(s.parallel.vpp == defaults.parallel.vpp);
  CHECK(s.optimizer.state_bytes == defaults.optimizer.state_bytes);
  CHECK(s.overlap.grad_reduce == defaults.overlap.grad_reduce);
  CHECK(s.cluster.fabric == defaults.cluster.fabric);
  CHECK_FALSE(s.cluster.nic_override.has_value());
}

TEST_CASE("scenario: overrides win over the file and show in the text that the report keeps") {
  const Scenario s = read(kDense, {"parallel.tp=4", "cluster.nic_override=25 GB/s", "optimizer.name=muon"});
  CHECK(s.parallel.tp == 4);
  CHECK(s.cluster.nic_override->value() == 25e9);
  CHECK(s.optimizer.name == "muon");
  CHECK(s.text.find("muon") != std::string::npos);
  CHECK(problems_of(s.text) == "none");
}

TEST_CASE("scenario: counts take suffixes and nouns") {
  const Scenario s = read(kDense, {"batch.sequence=8Ki tokens", "batch.micro_batch=2 sequences"});
  CHECK(s.batch.sequence == 8192);
  CHECK(s.batch.micro_batch == 2);
}

TEST_CASE("scenario: a slip in one section does not hide contradictions in another") {
  const std::string messages = problems_of(kDense, {"overlap.p2p=1", "parallel.tp=3"});
  CHECK(messages.find("overlap.p2p: needs true or false") != std::string::npos);
  CHECK(messages.find("does not divide the 16 GPUs") != std::string::npos);
}

TEST_CASE("scenario: a wrong number does not raise follow-up contradictions about its section") {
  const std::string messages = problems_of(kDense, {"parallel.tp=many"});
  CHECK(std::count(messages.begin(), messages.end(), '\n') == 0);
}

TEST_CASE("scenario: an unknown name of a scenario suggests a shipped one") {
  try {
    load_scenario("k3_2048_h80");
    FAIL("must throw");
  } catch (const ConfigError& e) {
    CHECK(std::string(e.what()).ends_with("(did you mean 'k3_2048_h800'?)"));
  }
}

TEST_CASE("scenario: problems found after loading get the line of their key, or --set") {
  const std::string file = K3SIM_SOURCE_DIR "/scenarios/k3_2048_h800/scenario.yaml";
  const ConfigError placed = with_places(ConfigError("unknown module", "activation.policy"), file, {});
  CHECK(std::string(placed.what()).ends_with("/scenario.yaml:10:22: activation.policy: unknown module"));
  const ConfigError set =
      with_places(ConfigError("unknown module", "activation.policy"), file, {"activation.policy=x"});
  CHECK(std::string(set.what()) == "error: --set: activation.policy: unknown module");
}

TEST_CASE("scenario: every malformed file is refused with exactly the messages in its header") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(K3SIM_TEST_DATA "/malformed"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 40);
  for (const auto& file : files) {
    CAPTURE(file);
    const Malformed malformed = read_header(file);
    std::string messages;
    try {
      load_scenario(file.string(), malformed.overrides);
    } catch (const ConfigError& e) {
      messages = without_file(e.what(), file.string());
    }
    CHECK(messages == malformed.expected);
    CHECK_FALSE(malformed.expected.empty());
  }
}
