// Source: product-spec section 3; see space_values.h.
#include "models/config/space_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/config/data_files.h"
#include "models/config/yaml_tree.h"
#include "sim/base/units_text.h"

namespace k3sim {
namespace {

constexpr std::size_t kMostValues = 10'000;

bool holds_list(const Field& field) {
  return std::visit(
      [](auto member) {
        using Member = std::remove_reference_t<decltype(member(std::declval<Scenario&>()))>;
        return std::is_same_v<Member, std::vector<int>> || std::is_same_v<Member, std::vector<std::int64_t>> ||
               std::is_same_v<Member, std::vector<std::string>> || std::is_same_v<Member, std::vector<TensorRule>>;
      },
      field.ref);
}

bool holds_bool(const Field& field) {
  return std::holds_alternative<bool& (*)(Scenario&)>(field.ref);
}

std::string flow_text(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::list) return value.quoted ? '"' + value.text + '"' : value.text;
  std::vector<std::string> parts;
  for (const auto& item : value.items) parts.push_back(flow_text(*item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

const YamlValue* part(const YamlValue& map, const char* name) {
  const YamlValue::Entry* e = map.find(name);
  return e && e->value->kind == YamlValue::Kind::scalar ? e->value.get() : nullptr;
}

bool is_range(const YamlValue& value) {
  return value.kind == YamlValue::Kind::map && (value.find("from") || value.find("to") || value.find("step"));
}

std::vector<std::string> range_values(const Field& field, const YamlValue& value, std::vector<Problem>& problems) {
  const auto refuse = [&](const std::string& what) {
    problems.push_back({value.place, field.path, what, "for example {from: 1, to: 8, step: x2}"});
    return std::vector<std::string>{};
  };
  const YamlValue *from = part(value, "from"), *to = part(value, "to"), *step = part(value, "step");
  if (!from || !to || !step || value.entries.size() != 3) return refuse("a range needs from, to and step, no more");
  const auto first = parse_count(from->text, field.noun), last = parse_count(to->text, field.noun);
  const bool times = step->text.starts_with("x"), plus = step->text.starts_with("+");
  const auto by = parse_count(times || plus ? step->text.substr(1) : std::string());
  if (!first || !last) return refuse("from and to must be whole numbers");
  if (!by || *by.value < (times ? 2 : 1))
    return refuse(fmt::format("step '{}' is neither x2, x3 ... nor +1, +2 ...", step->text));
  if (*first.value > *last.value) return refuse(fmt::format("from {} is above to {}", *first.value, *last.value));
  if (times && *first.value < 1) return refuse("a multiplied range must start at 1 or more");
  std::vector<std::string> out;
  for (std::int64_t v = *first.value; v <= *last.value && out.size() <= kMostValues;
       v = times ? v * *by.value : v + *by.value)
    out.push_back(fmt::format("{}", v));
  return out.size() > kMostValues ? refuse(fmt::format("has more than {} values", kMostValues)) : out;
}

std::vector<std::string> powers_of_two(std::int64_t limit) {
  std::vector<std::string> out;
  for (std::int64_t v = 1; v <= limit; v *= 2) out.push_back(fmt::format("{}", v));
  return out;
}

std::vector<std::string> divisors(std::int64_t n, std::int64_t limit) {
  std::vector<std::string> out;
  for (std::int64_t v = 1; v <= std::min(n, limit); ++v)
    if (n % v == 0) out.push_back(fmt::format("{}", v));
  return out;
}

std::int64_t common_experts(const ModelSpec& model) {
  std::int64_t n = 0;
  for (const LayerSpec& l : model.layers) n = std::gcd(n, l.ffn.experts);
  return std::max<std::int64_t>(1, n);
}

std::vector<std::string> automatic_degree(const std::string& key, const Scenario& s) {
  const std::int64_t gpus = s.cluster.gpus(), layers = static_cast<std::int64_t>(s.model.layers.size());
  if (key == "parallel.tp") return powers_of_two(s.cluster.gpus_per_node);
  if (key == "parallel.etp") return powers_of_two(s.cluster.gpus_per_node);
  if (key == "parallel.cp") return powers_of_two(std::min<std::int64_t>(16, s.batch.sequence));
  if (key == "parallel.pp") return divisors(gpus, layers);
  if (key == "parallel.vpp") return {"1", "2", "3", "4", "6", "8"};
  if (key == "parallel.ep") return divisors(common_experts(s.model), gpus);
  if (key == "batch.micro_batch") return powers_of_two(8);
  if (key == "optimizer.zero") return {"0", "1", "2", "3"};
  return {};
}

}  // namespace

bool is_automatic(const Field& field, const YamlValue& value) {
  if (value.kind != YamlValue::Kind::scalar || value.quoted || value.text != "auto") return false;
  // Where `auto` is itself a value of the key, it stays that value.
  return field.zero_word != "auto" &&
         std::find(field.choices.begin(), field.choices.end(), "auto") == field.choices.end();
}

std::vector<std::string> automatic_values(const Field& field, const Scenario& scenario) {
  if (field.path == "schedule.name") {
    std::vector<std::string> names;  // the search for an order is a search of its own
    for (const std::string& name : field.choices)
      if (name != "automatic") names.push_back(name);
    return names;
  }
  if (!field.choices.empty()) return field.choices;
  if (!field.folder.empty()) return known_names(field.folder);
  if (holds_bool(field)) return {"false", "true"};
  return automatic_degree(field.path, scenario);
}

std::optional<std::vector<std::string>> axis_values(const Field& field, const YamlValue& value,
                                                    std::vector<Problem>& problems) {
  if (is_range(value)) return range_values(field, value, problems);
  if (value.kind != YamlValue::Kind::list) return std::nullopt;
  const bool nested = !value.items.empty() && value.items.front()->kind == YamlValue::Kind::list;
  if (holds_list(field) && !nested) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& item : value.items) {
    if (item->kind == YamlValue::Kind::map || item->kind == YamlValue::Kind::null)
      problems.push_back({item->place, field.path, "a list of values may hold no maps or empty entries", {}});
    const std::string text = flow_text(*item);
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
  }
  if (out.empty()) problems.push_back({value.place, field.path, "the list of values is empty", {}});
  return out;
}

}  // namespace k3sim
