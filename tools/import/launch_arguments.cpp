// Source: Megatron-LM megatron/training/arguments.py (names, aliases, argparse prefixes); see launch_arguments.h.
#include "tools/import/launch_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/base/error.h"

namespace k3sim {
namespace {

bool is_null(const std::string& value) {
  return value.empty() || value == "null" || value == "None" || value == "~";
}

// argparse takes an unambiguous beginning of a name; four words are long enough not to clash.
bool abbreviates(const std::string& given, const std::string& name) {
  return given.size() >= 16 && given.size() < name.size() && name.compare(0, given.size(), given) == 0;
}

}  // namespace

void LaunchArguments::add(LaunchArgument argument) {
  std::replace(argument.name.begin(), argument.name.end(), '_', '-');
  arguments_.push_back(std::move(argument));
}

const LaunchArgument* LaunchArguments::find(Names names) {
  LaunchArgument* found = nullptr;
  const char* found_as = nullptr;
  for (const char* name : names) {
    for (LaunchArgument& a : arguments_) {
      if (a.name != name && !abbreviates(a.name, name)) continue;
      a.used = true;
      const bool null = a.values.size() == 1 && is_null(a.values.front()) && a.unknown.empty();
      if (!null && (!found || found_as == name)) found = &a, found_as = name;  // the last one of the first name
    }
  }
  if (!found) return nullptr;
  if (!found->unknown.empty())
    throw ConfigError(fmt::format("--{} depends on ${}, which the script does not set; give it with --env {}=VALUE",
                                  found->name, found->unknown.front(), found->unknown.front()),
                      {}, Place{file, found->line, 0});
  return found;
}

std::optional<std::string> LaunchArguments::text(Names names) {
  const LaunchArgument* a = find(names);
  if (!a || a->values.empty()) return std::nullopt;
  return a->values.front();
}

std::optional<double> LaunchArguments::number(Names names) {
  const LaunchArgument* a = find(names);
  if (!a || a->values.empty()) return std::nullopt;
  std::string digits;
  for (char c : a->values.front())
    if (c != '_' && c != ',') digits += c;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end == digits.c_str() || *end != '\0')
    throw ConfigError(fmt::format("--{}: '{}' is no number", a->name, a->values.front()), {}, Place{file, a->line, 0});
  return value;
}

std::optional<std::int64_t> LaunchArguments::integer(Names names) {
  const std::optional<double> value = number(names);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || std::fabs(*value) > 1e15)
    throw ConfigError(fmt::format("--{}: {} is no whole number", *names.begin(), *value), {}, Place{file, 0, 0});
  return static_cast<std::int64_t>(*value);
}

bool LaunchArguments::flag(Names names) {
  const LaunchArgument* a = find(names);
  if (!a) return false;
  if (a->values.empty()) return true;
  const std::string& v = a->values.front();
  return !(v == "false" || v == "False" || v == "0" || v == "no");
}

}  // namespace k3sim
