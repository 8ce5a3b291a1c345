// Source: product-spec section 3; see scenario_loader.h.
#include "models/config/scenario_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/config/data_files.h"
#include "models/config/expert_width.h"
#include "models/config/field_reader.h"
#include "models/config/field_table.h"
#include "models/config/model_loader.h"
#include "models/config/scenario_check.h"
#include "models/config/yaml_reader.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_path("scenarios"), error))
    if (fs::exists(entry.path() / "scenario.yaml", error)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// A path in the file means the neighbour of the file when there is one.
std::string beside(const std::string& scenario_file, const std::string& path) {
  const fs::path neighbour = fs::path(scenario_file).parent_path() / path;
  std::error_code error;
  return fs::is_regular_file(neighbour, error) ? neighbour.string() : path;
}

// Problems without a place of their own are about the `model` key; others point into the model's file.
bool read_model(YamlDocument& document, Scenario& scenario) {
  const YamlNode section = document.root().child("model");
  if (section.is_map()) {
    const std::size_t problems = document.problems().size();
    scenario.model = read_model_section(section);
    if (document.problems().size() > problems) return false;
    const std::vector<std::string> unsound = model_problems(scenario.model);
    for (const std::string& what : unsound) section.problem(what);
    return unsound.empty();
  }
  std::string name;
  if (!document.root().require("model", name)) return false;
  try {
    scenario.model = load_model(beside(document.file(), name));
    return true;
  } catch (const ConfigError& e) {
    for (const Problem& p : e.problems()) {
      if (p.place.file.empty())
        document.root().child("model").problem(p.what, p.hint);
      else
        document.problem(p);
    }
    return false;
  }
}

void check_file(const YamlNode& node, const std::string& path) {
  std::error_code error;
  if (!path.empty() && !fs::is_regular_file(path, error)) node.problem(fmt::format("no such file '{}'", path));
}

void settle(const YamlDocument& document, Scenario& scenario) {
  const YamlNode routing = node_at(document.root(), "moe.routing");
  if (scenario.moe.routing.skew_sigma + scenario.moe.routing.layer_sigma > 0 && !routing.child("source").present())
    scenario.moe.routing.source = "lognormal";
  scenario.schedule.file = beside(document.file(), scenario.schedule.file);
  scenario.moe.routing.file = beside(document.file(), scenario.moe.routing.file);
  check_file(node_at(document.root(), "schedule.file"), scenario.schedule.file);
  if (const auto wrong = set_expert_width(scenario.model, scenario.moe.expert_width == "full"))
    node_at(document.root(), "moe.expert_width").problem(*wrong);
  check_file(routing.child("file"), scenario.moe.routing.file);
  if (!scenario.name.empty() || scenario.file.empty()) return;
  const fs::path file = fs::absolute(scenario.file);
  scenario.name = (file.filename() == "scenario.yaml" ? file.parent_path().filename() : file.stem()).string();
}

}  // namespace

std::string find_scenario_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return (fs::path(path) / "scenario.yaml").string();
  if (fs::exists(path, error) || path.ends_with(".yaml")) return path;
  const std::string shipped = data_path("scenarios/" + path + "/scenario.yaml");
  if (fs::exists(shipped, error)) return shipped;
  if (path.find('/') != std::string::npos) return path;
  Problem unknown;
  unknown.what = fmt::format("no file and no shipped scenario is called '{}'", path);
  unknown.hint = did_you_mean(path, shipped_scenarios());
  throw ConfigError(std::vector<Problem>(1, unknown));
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  YamlDocument document = YamlDocument::load(find_scenario_file(path));
  for (const std::string& assignment : overrides) document.set("--set", assignment);
  return read_scenario(document);
}

FieldsRead read_scenario_fields(YamlDocument& document) {
  FieldsRead read;
  read.scenario.file = document.file();
  document.root().child("model");  // a Problem when the document is no map at all
  if (!document.root().is_map()) document.throw_if_problems();
  read.model_known = read_model(document, read.scenario);
  for (const Field& field : scenario_fields()) read_field(field, document.root(), read.scenario);
  settle(document, read.scenario);
  return read;
}

ConfigError with_places(const ConfigError& error, const std::string& path, const std::vector<std::string>& overrides) {
  YamlDocument document = YamlDocument::load(find_scenario_file(path));
  for (const std::string& assignment : overrides) document.set("--set", assignment);
  std::vector<Problem> problems = error.problems();
  for (Problem& p : problems)
    if (p.place.file.empty() && !p.key.empty()) p.place = node_at(document.root(), p.key).place();
  return ConfigError(std::move(problems));
}

Scenario read_scenario(YamlDocument& document) {
  FieldsRead read = read_scenario_fields(document);
  check_scenario(read.scenario, document, read.model_known);
  document.finish();
  read.scenario.text = document.to_text();
  return std::move(read.scenario);
}

}  // namespace k3sim
