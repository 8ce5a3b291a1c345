// Source: product-spec section 2; see yaml_reader.h.
#include "models/config/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "models/config/yaml_tree.h"
#include "sim/base/suggest.h"
#include "sim/base/units_text.h"

namespace k3sim {

// Keyed by address for look-up only; everything that reaches the user is found by walking the tree in file order.
struct YamlState {
  std::string file;
  std::shared_ptr<YamlValue> root;
  std::vector<Problem> problems;
  std::map<const YamlValue*, std::set<std::string, std::less<>>> asked;
  std::set<const YamlValue*> accepted;
};

namespace {

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "nothing";
    case YamlValue::Kind::list:
      return fmt::format("a list of {}", value.items.size());
    case YamlValue::Kind::map:
      return "a map of keys";
    case YamlValue::Kind::scalar:
      break;
  }
  return value.quoted ? fmt::format("the text \"{}\"", value.text) : fmt::format("'{}'", value.text);
}

bool same(const Problem& a, const Problem& b) {
  return a.key == b.key && a.what == b.what && a.place.line == b.place.line && a.place.column == b.place.column;
}

void add_once(std::vector<Problem>& problems, Problem p) {
  for (const Problem& known : problems)
    if (same(known, p)) return;
  problems.push_back(std::move(p));
}

std::string join_key(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

void collect_unknown(const YamlState& state, const YamlValue& value, const std::string& path,
                     std::vector<Problem>& out) {
  if (state.accepted.count(&value) > 0) return;
  if (value.kind == YamlValue::Kind::list) {
    for (std::size_t i = 0; i < value.items.size(); ++i)
      collect_unknown(state, *value.items[i], fmt::format("{}[{}]", path, i), out);
    return;
  }
  const auto asked = state.asked.find(&value);
  if (asked == state.asked.end()) return;
  const std::vector<std::string> known(asked->second.begin(), asked->second.end());
  for (const YamlValue::Entry& e : value.entries) {
    if (asked->second.count(e.key) > 0)
      collect_unknown(state, *e.value, join_key(path, e.key), out);
    else
      out.push_back({e.place, join_key(path, e.key), "unknown key", did_you_mean(e.key, known)});
  }
}

[[noreturn]] void throw_sorted(std::vector<Problem> problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  throw ConfigError(std::move(problems));
}

template <class T>
bool parse_whole(const std::string& text, T& out) {
  const char* end = text.data() + text.size();
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return false;
  out = value;
  return true;
}

}  // namespace

YamlNode::YamlNode(std::shared_ptr<YamlState> state, std::shared_ptr<const YamlValue> value, std::string key,
                   Place parent)
    : state_(std::move(state)), value_(std::move(value)), key_(std::move(key)), parent_(std::move(parent)) {}

YamlNode::Kind YamlNode::kind() const {
  if (!value_) return Kind::absent;
  switch (value_->kind) {
    case YamlValue::Kind::null:
      return Kind::null;
    case YamlValue::Kind::scalar:
      return Kind::scalar;
    case YamlValue::Kind::list:
      return Kind::list;
    case YamlValue::Kind::map:
      return Kind::map;
  }
  return Kind::absent;
}

Place YamlNode::place() const {
  return value_ ? value_->place : parent_;
}

std::string YamlNode::name() const {
  const std::size_t dot = key_.rfind('.');
  return dot == std::string::npos ? key_ : key_.substr(dot + 1);
}

std::string YamlNode::text() const {
  return is_scalar() ? value_->text : std::string();
}

YamlNode YamlNode::child(std::string_view name) const {
  const std::string path = join_key(key_, name);
  if (!value_) return {state_, nullptr, path, parent_};
  if (value_->kind != YamlValue::Kind::map) {
    problem(fmt::format("needs a map of keys, got {}", describe(*value_)));
    return {state_, nullptr, path, place()};
  }
  state_->asked[value_.get()].emplace(name);
  const YamlValue::Entry* entry = value_->find(name);
  return {state_, entry ? entry->value : nullptr, path, place()};
}

bool YamlNode::has(std::string_view name) const {
  if (!is_map()) return false;
  state_->asked[value_.get()].emplace(name);
  return value_->find(name) != nullptr;
}

std::vector<YamlNode> YamlNode::items() const {
  std::vector<YamlNode> out;
  if (!value_) return out;
  if (!is_list()) {
    wrong_kind("a list");
    return out;
  }
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    out.push_back(YamlNode(state_, value_->items[i], fmt::format("{}[{}]", key_, i), place()));
  return out;
}

std::vector<YamlNode> YamlNode::entries() const {
  std::vector<YamlNode> out;
  if (!value_) return out;
  if (!is_map()) {
    wrong_kind("a map of keys");
    return out;
  }
  for (const YamlValue::Entry& e : value_->entries) out.push_back(child(e.key));
  return out;
}

void YamlNode::accept_all() const {
  if (value_) state_->accepted.insert(value_.get());
}

void YamlNode::problem(std::string what, std::string hint) const {
  add_once(state_->problems, Problem{place(), key_, std::move(what), std::move(hint)});
}

void YamlNode::missing(std::string_view name) const {
  child(name).problem("is missing");
}

bool YamlNode::wrong_kind(std::string_view needed) const {
  if (value_) problem(fmt::format("needs {}, got {}", needed, describe(*value_)));
  return false;
}

bool YamlNode::to(std::string& out) const {
  if (!is_scalar()) return wrong_kind("a word");
  out = value_->text;
  return true;
}

bool YamlNode::to(bool& out) const {
  if (!is_scalar() || value_->quoted || (value_->text != "true" && value_->text != "false"))
    return wrong_kind("true or false");
  out = value_->text == "true";
  return true;
}

bool YamlNode::to(int& out) const {
  return (is_scalar() && !value_->quoted && parse_whole(value_->text, out)) || wrong_kind("a whole number");
}

bool YamlNode::to(std::int64_t& out) const {
  return (is_scalar() && !value_->quoted && parse_whole(value_->text, out)) || wrong_kind("a whole number");
}

bool YamlNode::to(std::uint64_t& out) const {
  return (is_scalar() && !value_->quoted && parse_whole(value_->text, out)) ||
         wrong_kind("a whole number of at least 0");
}

bool YamlNode::to(double& out) const {
  double value = 0;
  if (!is_scalar() || value_->quoted || !parse_whole(value_->text, value) || !std::isfinite(value))
    return wrong_kind("a number");
  out = value;
  return true;
}

template <class T, class Parse>
bool YamlNode::to_quantity(T& out, const Parse& parse, std::string_view needed) const {
  if (!is_scalar()) return wrong_kind(needed);
  const Parsed<T> parsed = parse(std::string_view(value_->text));
  if (!parsed)
    problem(parsed.why, parsed.hint);
  else
    out = *parsed.value;
  return static_cast<bool>(parsed);
}

bool YamlNode::to(Bytes& out) const {
  return to_quantity(out, parse_bytes, "a size such as '80 GiB'");
}
bool YamlNode::to(Time& out) const {
  return to_quantity(out, parse_time, "a time such as '7 us'");
}
bool YamlNode::to(Bandwidth& out) const {
  return to_quantity(out, parse_bandwidth, "a bandwidth such as '450 GB/s'");
}
bool YamlNode::to(FlopRate& out) const {
  return to_quantity(out, parse_flop_rate, "a rate such as '989.4 TFLOP/s'");
}
bool YamlNode::to(Flops& out) const {
  return to_quantity(out, parse_flops, "a number of operations such as '3 GFLOP'");
}
bool YamlNode::to_count(std::int64_t& out, std::string_view noun) const {
  return to_quantity(
      out, [noun](std::string_view text) { return parse_count(text, noun); }, "a whole number");
}

YamlDocument YamlDocument::load(const std::string& path) {
  constexpr std::uintmax_t kLargestFile = 64u << 20;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw ConfigError("no such file", {}, {path, 0, 0});
  if (!std::filesystem::is_regular_file(path, error)) throw ConfigError("is not a file", {}, {path, 0, 0});
  if (std::filesystem::file_size(path, error) > kLargestFile)
    throw ConfigError("is larger than 64 MiB, which no YAML of ours is", {}, {path, 0, 0});
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.good()) throw ConfigError("cannot be read", {}, {path, 0, 0});
  return parse(text.str(), path);
}

YamlDocument YamlDocument::parse(const std::string& text, const std::string& file_name) {
  auto state = std::make_shared<YamlState>();
  state->file = file_name;
  state->root = parse_yaml_tree(text, file_name, state->problems);
  return YamlDocument(std::move(state));
}

YamlNode YamlDocument::root() const {
  return {state_, state_->root, {}, state_->root->place};
}
const std::string& YamlDocument::file() const {
  return state_->file;
}

void YamlDocument::set(const std::string& origin, const std::string& assignment) {
  const Place place{origin, 0, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return problem({place, {}, fmt::format("'{}' is not of the form key.path=value", assignment), {}});
  const std::string path = assignment.substr(0, equals);
  std::shared_ptr<YamlValue> value = parse_yaml_tree(assignment.substr(equals + 1), origin, state_->problems);
  value->place = place;
  YamlValue* at = state_->root.get();
  std::istringstream parts(path);
  std::string part, rest;
  for (std::getline(parts, part, '.'); std::getline(parts, rest, '.'); part = rest) {
    const YamlValue::Entry* known = at->find(part);
    if (at->kind == YamlValue::Kind::null) at->kind = YamlValue::Kind::map;
    std::shared_ptr<YamlValue> next = known ? known->value : std::make_shared<YamlValue>();
    if (!known) next->place = place, at->entries.push_back({part, place, next});
    at = next.get();
    if (at->kind == YamlValue::Kind::scalar || at->kind == YamlValue::Kind::list)
      return problem({place, path, fmt::format("'{}' is {} and has no keys", part, describe(*at)), {}});
  }
  at->kind = YamlValue::Kind::map;
  for (YamlValue::Entry& e : at->entries)
    if (e.key == part) return void(e = {part, place, std::move(value)});
  at->entries.push_back({part, place, std::move(value)});
}

void YamlDocument::problem(Problem p) {
  state_->problems.push_back(std::move(p));
}
const std::vector<Problem>& YamlDocument::problems() const {
  return state_->problems;
}

void YamlDocument::throw_if_problems() const {
  if (!state_->problems.empty()) throw_sorted(state_->problems);
}

void YamlDocument::find_unknown_keys() const {
  std::vector<Problem> unknown;
  collect_unknown(*state_, *state_->root, {}, unknown);
  for (Problem& p : unknown) add_once(state_->problems, std::move(p));
}

void YamlDocument::finish() const {
  find_unknown_keys();
  throw_if_problems();
}

std::string YamlDocument::to_text() const {
  return write_yaml_tree(*state_->root);
}

}  // namespace k3sim
