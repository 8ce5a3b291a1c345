// Source: product-spec section 3; see field_reader.h.
#include "models/config/field_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>
#include <type_traits>

#include "models/config/data_files.h"
#include "sim/base/suggest.h"
#include "sim/base/units_text.h"

namespace k3sim {
namespace {

std::string shown(double v) {
  return v == static_cast<double>(static_cast<std::int64_t>(v)) ? fmt::format("{}", static_cast<std::int64_t>(v))
                                                                : fmt::format("{}", v);
}

bool check_range(const YamlNode& node, const Field& field, double value, const std::string& text) {
  const bool good = !(field.min && value < *field.min) && !(field.max && value > *field.max);
  if (field.min && value < *field.min)
    node.problem(fmt::format("must be at least {}, got {}", shown(*field.min), text));
  if (field.max && value > *field.max) node.problem(fmt::format("must be at most {}, got {}", shown(*field.max), text));
  return good;
}

template <class T>
void read_whole(const YamlNode& node, const Field& field, T& out) {
  if (!field.zero_word.empty() && node.text() == field.zero_word) {
    out = 0;
    return;
  }
  std::int64_t value = 0;
  if (!node.to_count(value, field.noun)) return;
  if (!check_range(node, field, static_cast<double>(value), node.text())) return;
  const auto largest = std::min<std::uint64_t>(std::numeric_limits<T>::max(), INT64_MAX);
  if (value > static_cast<std::int64_t>(largest)) return node.problem(fmt::format("{} is too large", value));
  out = static_cast<T>(value);
}

void read_word(const YamlNode& node, const Field& field, std::string& out) {
  std::string word;
  if (!node.to(word)) return;
  out = word;
  if (word.empty()) return node.problem("is empty");
  const std::vector<std::string> known = field.folder.empty() ? field.choices : known_names(field.folder);
  if (known.empty() || std::find(known.begin(), known.end(), word) != known.end()) return;
  if (!field.folder.empty() && std::filesystem::exists(word)) return;
  const std::string hint = did_you_mean(word, known);
  if (!hint.empty()) return node.problem(fmt::format("'{}' is not known", word), hint);
  node.problem(fmt::format("'{}' is not known; it is one of {}", word, fmt::join(known, ", ")));
}

template <class T>
void read_value(const YamlNode& node, const Field& field, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    node.to(out);
  } else if constexpr (std::is_integral_v<T>) {
    read_whole(node, field, out);
  } else if constexpr (std::is_same_v<T, double>) {
    if (node.to(out)) check_range(node, field, out, node.text());
  } else if constexpr (std::is_same_v<T, std::string>) {
    read_word(node, field, out);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    if (node.to(out)) check_range(node, field, out.as_double(), node.text());
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    if (node.to(out)) check_range(node, field, out.value(), node.text());
  }
}

template <class T>
void read_value(const YamlNode& node, const Field& field, std::optional<T>& out) {
  T value{};
  read_value(node, field, value);
  out = value;
}

void read_value(const YamlNode& node, const Field& field, std::vector<TensorRule>& out) {
  out.clear();
  Field word = field;
  word.choices = tensor_policies();
  for (const YamlNode& item : node.items()) {
    TensorRule rule;
    const bool given = item.require("match", rule.match);
    const YamlNode policy = item.child("policy");
    if (!policy.present()) {
      item.problem("a rule needs match and policy");
      continue;
    }
    read_word(policy, word, rule.policy);
    if (given && rule.match.empty()) item.child("match").problem("is empty");
    out.push_back(std::move(rule));
  }
}

template <class T>
void read_value(const YamlNode& node, const Field& field, std::vector<T>& out) {
  out.clear();
  for (const YamlNode& item : node.items()) {
    T value{};
    read_value(item, field, value);
    out.push_back(std::move(value));
  }
}

}  // namespace

YamlNode node_at(const YamlNode& root, const std::string& path) {
  YamlNode node = root;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) node = node.child(part);
  return node;
}

void read_field(const Field& field, const YamlNode& root, Scenario& scenario) {
  const YamlNode node = node_at(root, field.path);
  if (!node.present()) return;
  std::visit([&](auto member) { read_value(node, field, member(scenario)); }, field.ref);
}

}  // namespace k3sim
