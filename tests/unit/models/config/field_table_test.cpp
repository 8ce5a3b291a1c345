// The table is the contract of the file format: complete, unique, and the schema says the same.
#include "models/config/field_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

using namespace k3sim;

TEST_CASE("fields: every path is there once and explained") {
  std::set<std::string> paths;
  for (const Field& field : scenario_fields()) {
    CAPTURE(field.path);
    CHECK(paths.insert(field.path).second);
    CHECK(field.description.size() > 5);
  }
  CHECK(paths.size() > 50);
}

TEST_CASE("fields: every default of a closed list is in the list") {
  for (const Field& field : scenario_fields()) {
    if (field.choices.empty()) continue;
    CAPTURE(field.path);
    CHECK(std::count(field.choices.begin(), field.choices.end(), default_text(field)) == 1);
  }
}

TEST_CASE("schema: is JSON and holds every field with its description, and nothing unknown is allowed") {
  const nlohmann::json schema = nlohmann::json::parse(scenario_schema());
  CHECK(schema.at("required").at(0) == "model");
  for (const Field& field : scenario_fields()) {
    CAPTURE(field.path);
    const nlohmann::json* at = &schema;
    std::string rest = field.path + ".";
    for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      CHECK((*at).at("additionalProperties") == false);
      at = &at->at("properties").at(rest.substr(0, dot));
      rest = rest.substr(dot + 1);
    }
    CHECK(at->at("description") == field.description);
  }
}

TEST_CASE("schema: numbers keep their range and words their list") {
  const nlohmann::json schema = nlohmann::json::parse(scenario_schema());
  const nlohmann::json& optimizer = schema.at("properties").at("optimizer").at("properties");
  CHECK(optimizer.at("zero").at("anyOf").at(0).at("maximum") == 3);
  CHECK(optimizer.at("zero").at("default") == 1);
  CHECK(optimizer.at("name").at("enum").at(0) == "adamw");
  CHECK(optimizer.at("state_bytes").at("default") == "12 B");
  CHECK(schema.at("properties").at("parallel").at("properties").at("dp").at("default") == "auto");
}
