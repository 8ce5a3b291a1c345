// Source: product-spec section 3; see space.h.
#include "models/config/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/config/data_files.h"
#include "models/config/expert_width.h"
#include "models/config/field_reader.h"
#include "models/config/scenario_loader.h"
#include "models/config/space_values.h"
#include "models/config/yaml_tree.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "sim/base/suggest.h"

namespace k3sim {

struct SearchSpace::Setter {
  std::vector<const Field*> fields;  // which members of the holder count
  bool model = false;
  Scenario holder;
};

namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMostConfigurations = std::int64_t{1} << 40;

const Field* find_field(const std::string& path) {
  for (const Field& f : scenario_fields())
    if (f.path == path) return &f;
  return nullptr;
}

// The model is no member of the table; as an axis it behaves like a word.
const Field& model_field() {
  static const Field field{"model", [](Scenario& s) -> std::string& { return s.name; }, "model"};
  return field;
}

std::shared_ptr<YamlValue> copy_tree(const YamlValue& from) {
  auto out = std::make_shared<YamlValue>(from);
  for (YamlValue::Entry& e : out->entries) e.value = copy_tree(*e.value);
  for (auto& item : out->items) item = copy_tree(*item);
  return out;
}

YamlValue::Entry* find_entry(YamlValue& map, const std::string& key) {
  for (YamlValue::Entry& e : map.entries)
    if (e.key == key) return &e;
  return nullptr;
}

// The entry at a dotted path; missing maps on the way are made when `make` is set.
std::shared_ptr<YamlValue>* slot_at(YamlValue& root, const std::string& path, bool make) {
  YamlValue* at = &root;
  std::shared_ptr<YamlValue>* slot = nullptr;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    if (at->kind != YamlValue::Kind::map && !(make && at->kind == YamlValue::Kind::null)) return nullptr;
    at->kind = YamlValue::Kind::map;
    YamlValue::Entry* e = find_entry(*at, part);
    if (!e) {
      if (!make) return nullptr;
      at->entries.push_back({part, at->place, std::make_shared<YamlValue>()});
      e = &at->entries.back();
    }
    slot = &e->value;
    at = slot->get();
  }
  return slot;
}

std::string leaf_text(const YamlValue& v) {
  if (v.kind == YamlValue::Kind::scalar) return v.quoted ? '"' + v.text + '"' : v.text;
  std::vector<std::string> parts;
  for (const auto& item : v.items) parts.push_back(leaf_text(*item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

void flatten(const YamlValue& map, const std::string& path, SpaceValue& out) {
  for (const YamlValue::Entry& e : map.entries) {
    const std::string key = path.empty() ? e.key : path + "." + e.key;
    if (e.value->kind == YamlValue::Kind::map)
      flatten(*e.value, key, out);
    else
      out.assignments.emplace_back(key, leaf_text(*e.value));
  }
}

std::string read_text(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw ConfigError("no such file", {}, {path, 0, 0});
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string find_space_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return (fs::path(path) / "space.yaml").string();
  if (fs::exists(path, error) || path.find('/') != std::string::npos || path.ends_with(".yaml")) return path;
  const std::string shipped = data_path("scenarios/" + path + "/space.yaml");
  return fs::exists(shipped, error) ? shipped : path;
}

}  // namespace

void SearchSpace::find_variants(std::vector<Problem>& problems) {
  YamlValue::Entry* entry = find_entry(*root_, "variants");
  if (!entry) return;
  SpaceAxis axis;
  axis.key = "variants";
  for (const auto& item : entry->value->items) {
    SpaceValue value;
    if (item->kind == YamlValue::Kind::map) flatten(*item, {}, value);
    if (value.assignments.empty())
      problems.push_back({item->place, "variants", "every entry must be a map of keys and values", {}});
    std::vector<std::string> texts;
    for (const auto& [key, text] : value.assignments) texts.push_back(key + "=" + text);
    value.text = fmt::format("{}", fmt::join(texts, " "));
    axis.values.push_back(std::move(value));
  }
  if (axis.values.empty()) problems.push_back({entry->place, "variants", "needs a list of maps", {}});
  std::erase_if(root_->entries, [](const YamlValue::Entry& e) { return e.key == "variants"; });
  axes_.push_back(std::move(axis));
}

void SearchSpace::add_axis(const Field& field, const std::shared_ptr<YamlValue>& value,
                           std::vector<Problem>& problems) {
  SpaceAxis axis;
  axis.key = field.path;
  std::optional<std::vector<std::string>> texts = axis_values(field, *value, problems);
  if (is_automatic(field, *value)) {
    texts = automatic_values(field, *base_);
    if (texts->empty())
      problems.push_back({value->place, field.path, "has no automatic values; write a list or a range", {}});
  }
  if (!texts) return;
  for (const std::string& t : *texts) axis.values.push_back({t, {{field.path, t}}});
  axes_.push_back(std::move(axis));
}

void SearchSpace::find_axes(std::vector<Problem>& problems) {
  std::vector<std::pair<const Field*, std::shared_ptr<YamlValue>>> found;
  const auto look = [&](const Field& f) {
    if (std::shared_ptr<YamlValue>* slot = slot_at(*root_, f.path, false)) found.emplace_back(&f, *slot);
  };
  look(model_field());
  for (const Field& f : scenario_fields()) look(f);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->place.line, a.second->place.column) <
           std::tie(b.second->place.line, b.second->place.column);
  });
  for (const auto& [field, value] : found) add_axis(*field, value, problems);
}

// The scenario with every axis at its first value (automatic ones at the default), to report mistakes at their place.
void SearchSpace::read_base(const std::string& text) {
  std::vector<Problem> ignored;
  YamlDocument document = YamlDocument::parse(text, file_);
  const auto settle = [&](const Field& f) {
    const std::shared_ptr<YamlValue>* slot = slot_at(*root_, f.path, false);
    if (!slot) return;
    const auto values = axis_values(f, **slot, ignored);
    std::string first = values && !values->empty() ? values->front() : std::string();
    if (is_automatic(f, **slot) || (values && values->empty())) first = default_text(f);
    if (!first.empty()) document.set(file_, f.path + "=" + first);
  };
  settle(model_field());
  for (const Field& f : scenario_fields()) settle(f);
  document.root().child("variants").accept_all();
  FieldsRead read = read_scenario_fields(document);
  document.finish();
  source_given_ = slot_at(*root_, "moe.routing.source", false) != nullptr;
  base_ = std::make_shared<const Scenario>(std::move(read.scenario));
}

std::shared_ptr<const SearchSpace::Setter> SearchSpace::read_setter(const SpaceValue& value,
                                                                    std::vector<Problem>& problems) const {
  auto setter = std::make_shared<Setter>();
  YamlDocument document = YamlDocument::parse("{}", file_);
  for (const auto& [key, text] : value.assignments) {
    document.set(file_, key + "=" + text);
    const Field* field = find_field(key);
    if (key == "model") setter->model = true;
    if (field) setter->fields.push_back(field);
    if (!field && key != "model") document.problem({{file_, 0, 0}, key, "unknown key", {}});
  }
  if (setter->model) setter->holder.model = read_scenario_fields(document).scenario.model;
  for (const Field* field : setter->fields) read_field(*field, document.root(), setter->holder);
  for (const Problem& p : document.problems()) problems.push_back(p);
  return setter;
}

// Every variant also sets back what only other variants set: applied one after the other, nothing of the last one
// stays.
void SearchSpace::complete_variants(std::vector<std::shared_ptr<const Setter>>& setters) const {
  std::vector<const Field*> all;
  bool model = false;
  for (const std::shared_ptr<const Setter>& setter : setters) {
    model = model || setter->model;
    for (const Field* f : setter->fields)
      if (std::find(all.begin(), all.end(), f) == all.end()) all.push_back(f);
  }
  for (std::shared_ptr<const Setter>& setter : setters) {
    auto complete = std::make_shared<Setter>(*setter);
    if (model && !setter->model) complete->model = true, complete->holder.model = base_->model;
    for (const Field* f : all) {
      if (std::find(setter->fields.begin(), setter->fields.end(), f) != setter->fields.end()) continue;
      std::visit([&](auto member) { member(complete->holder) = member(const_cast<Scenario&>(*base_)); }, f->ref);
      complete->fields.push_back(f);
    }
    setter = std::move(complete);
  }
}

void SearchSpace::read_setters(std::vector<Problem>& problems) {
  for (const SpaceAxis& axis : axes_) {
    std::vector<std::shared_ptr<const Setter>> setters;
    for (const SpaceValue& value : axis.values) setters.push_back(read_setter(value, problems));
    if (axis.key == "variants") complete_variants(setters);
    setters_.push_back(std::move(setters));
    size_ *= static_cast<std::int64_t>(axis.values.size());
    if (size_ > kMostConfigurations)
      throw ConfigError("the space has more than 2^40 configurations", {}, {file_, 0, 0});
  }
}

SearchSpace SearchSpace::parse(const std::string& text, const std::string& file_name,
                               const std::vector<std::string>& overrides) {
  SearchSpace space;
  space.file_ = file_name;
  std::string changed = text;
  if (!overrides.empty()) {
    YamlDocument document = YamlDocument::parse(text, file_name);
    for (const std::string& o : overrides) document.set("--set", o);
    document.throw_if_problems();
    changed = document.to_text();
  }
  space.text_ = changed;
  std::vector<Problem> problems;
  space.root_ = parse_yaml_tree(changed, file_name, problems);
  space.find_variants(problems);
  if (!problems.empty()) throw ConfigError(problems);
  space.read_base(changed);
  space.find_axes(problems);
  if (problems.empty()) space.read_setters(problems);
  if (!problems.empty()) throw ConfigError(problems);
  auto first = std::make_shared<Scenario>(*space.base_);
  for (std::size_t a = 0; a < space.axes_.size(); ++a) space.apply(a, 0, *first);
  space.base_ = first;
  return space;
}

SearchSpace SearchSpace::load(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string file = find_space_file(path);
  return parse(read_text(file), file, overrides);
}

std::vector<int> SearchSpace::choice(std::int64_t index) const {
  CS_CHECK(index >= 0 && index < size_, "configuration {} of {}", index, size_);
  std::vector<int> out(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const auto n = static_cast<std::int64_t>(axes_[a].values.size());
    out[a] = static_cast<int>(index % n);
    index /= n;
  }
  return out;
}

std::string SearchSpace::id(std::int64_t index) const {
  std::vector<std::string> parts;
  const std::vector<int> values = choice(index);
  for (std::size_t a = 0; a < axes_.size(); ++a)
    for (const auto& [key, text] : axes_[a].values[static_cast<std::size_t>(values[a])].assignments)
      parts.push_back(key + "=" + text);
  std::sort(parts.begin(), parts.end());
  Fingerprint f;
  for (const std::string& p : parts) f.add(std::string_view(p));
  return fmt::format("{:016x}", f.value());
}

std::string SearchSpace::digest() const {
  Fingerprint f;
  f.add(std::string_view(write_yaml_tree(*root_)));
  for (const SpaceAxis& axis : axes_)
    for (const SpaceValue& v : axis.values) f.add(std::string_view(axis.key + "=" + v.text));
  return fmt::format("{:016x}", f.value());
}

std::string SearchSpace::scenario_text(std::int64_t index) const {
  std::vector<Problem> problems;
  const std::shared_ptr<YamlValue> tree = copy_tree(*root_);
  const std::vector<int> values = choice(index);
  for (std::size_t a = 0; a < axes_.size(); ++a)
    for (const auto& [key, text] : axes_[a].values[static_cast<std::size_t>(values[a])].assignments)
      if (std::shared_ptr<YamlValue>* slot = slot_at(*tree, key, true)) *slot = parse_yaml_tree(text, file_, problems);
  return write_yaml_tree(*tree);
}

Scenario SearchSpace::scenario(std::int64_t index) const {
  YamlDocument document = YamlDocument::parse(scenario_text(index), file_);
  return read_scenario(document);
}

void SearchSpace::apply(std::size_t axis, int value, Scenario& scenario) const {
  const Setter& setter = *setters_[axis][static_cast<std::size_t>(value)];
  if (setter.model) scenario.model = setter.holder.model;
  for (const Field* field : setter.fields) {
    std::visit([&](auto member) { member(scenario) = member(const_cast<Scenario&>(setter.holder)); }, field->ref);
    const RoutingConfig& r = scenario.moe.routing;
    if ((field->path == "moe.routing.skew_sigma" || field->path == "moe.routing.layer_sigma") && !source_given_)
      scenario.moe.routing.source = r.skew_sigma + r.layer_sigma > 0 ? "lognormal" : "balanced";
  }
  set_expert_width(scenario.model, scenario.moe.expert_width == "full");
}

}  // namespace k3sim
