// JSON Schema of scenario.yaml from the field table, so that an editor completes and checks what the loader reads.
// Source: product-spec section 3 (`k3sim schema`); JSON Schema draft 2020-12.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "models/config/data_files.h"
#include "models/config/field_table.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSizePattern = "^[0-9.eE+]+ *([KMGTP]i?)?B$";
constexpr const char* kBandwidthPattern = "^[0-9.eE+]+ *(([KMGTP]i?)?B|[KMGT]?bit)/s$";

void add_range(const Field& field, Json& out) {
  // Whole bounds are written without a fraction: 1 and not 1.0.
  const auto number = [](double v) {
    return v == static_cast<double>(static_cast<std::int64_t>(v)) ? Json(static_cast<std::int64_t>(v)) : Json(v);
  };
  if (field.min) out["minimum"] = number(*field.min);
  if (field.max) out["maximum"] = number(*field.max);
}

// A count is a whole number, or text with a suffix or its noun ("64Ki", "8192 tokens"), or the word for 0.
Json count_schema(const Field& field) {
  Json number = {{"type", "integer"}};
  add_range(field, number);
  Json any = Json::array({number});
  const std::string noun = field.noun.empty() ? "" : fmt::format("( *{})?", field.noun);
  any.push_back({{"type", "string"}, {"pattern", fmt::format("^[0-9.eE+]+ *([KMBGT]|[KMG]i)?{}$", noun)}});
  if (!field.zero_word.empty()) any.push_back({{"const", field.zero_word}});
  return {{"anyOf", any}};
}

Json word_schema(const Field& field) {
  Json out = {{"type", "string"}};
  if (!field.choices.empty()) out["enum"] = field.choices;
  if (!field.folder.empty()) out["examples"] = known_names(field.folder);
  return out;
}

template <class T>
Json type_schema(const Field& field) {
  if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, double>) {
    Json out = {{"type", "number"}};
    add_range(field, out);
    return out;
  } else if constexpr (std::is_integral_v<T>) {
    return count_schema(field);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return word_schema(field);
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, std::optional<Bytes>>) {
    return {{"type", "string"}, {"pattern", kSizePattern}};
  } else if constexpr (std::is_same_v<T, std::optional<Bandwidth>>) {
    return {{"type", "string"}, {"pattern", kBandwidthPattern}};
  } else if constexpr (std::is_same_v<T, std::vector<TensorRule>>) {
    Json rule = {{"type", "object"}, {"additionalProperties", false}, {"required", {"match", "policy"}}};
    rule["properties"]["match"] = {{"type", "string"}};
    rule["properties"]["policy"] = {{"type", "string"}, {"enum", tensor_policies()}};
    return {{"type", "array"}, {"items", rule}};
  } else {
    return {{"type", "array"}, {"items", type_schema<typename T::value_type>(field)}};
  }
}

Json field_schema(const Field& field) {
  Json out = std::visit(
      [&](auto member) {
        Scenario scenario;
        return type_schema<std::remove_reference_t<decltype(member(scenario))>>(field);
      },
      field.ref);
  out["description"] = field.description;
  const std::string text = default_text(field);
  const bool means_absent = text.empty() || (text == "0" && field.min.value_or(0) > 0);
  if (means_absent) return out;
  const Json value = Json::parse(text, nullptr, false);
  out["default"] = value.is_discarded() ? Json(text) : value;
  return out;
}

Json object(const std::string& title) {
  Json out = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  if (!title.empty()) out["title"] = title;
  return out;
}

}  // namespace

std::string scenario_schema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  root.update(object("k3sim scenario"));
  root["required"] = {"model"};
  root["properties"]["model"] = {
      {"type", {"string", "object"}},
      {"description",
       "name in models/zoo, or the path of a model YAML or of a Hugging Face config.json, or the model itself"},
      {"examples", known_names("models/zoo")}};
  for (const Field& field : scenario_fields()) {
    Json* at = &root["properties"];
    std::string rest = field.path;
    for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
      Json& section = (*at)[rest.substr(0, dot)];
      if (section.is_null()) section = object("");
      at = &section["properties"];
      rest = rest.substr(dot + 1);
    }
    (*at)[rest] = field_schema(field);
  }
  return root.dump(2) + "\n";
}

}  // namespace k3sim
