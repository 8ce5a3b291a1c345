// A search space: a scenario in which any value may be a list, a range {from, to, step: x2 | +n} or `auto`, and an
// optional top-level `variants` list whose entries set several keys together.
//
// Configurations are the cross product of the axes in file order (the last axis varies fastest). `index` is the place
// in that order; `id` is a digest of the assignments, so that it stays the same when other values are added to the
// space. Keys that hold lists themselves (documents, stage_layers, recompute) become an axis only as a list of lists.
// Source: product-spec section 3 (space), issue "What-if".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/config/scenario.h"

namespace k3sim {

struct YamlValue;  // yaml_tree.h
struct Field;      // field_table.h
struct Problem;    // sim/base/error.h

struct SpaceValue {
  std::string text;                                              // shown in tables
  std::vector<std::pair<std::string, std::string>> assignments;  // key path, value in YAML flow form
};

struct SpaceAxis {
  std::string key;  // "variants" for entries that set several keys
  std::vector<SpaceValue> values;
};

class SearchSpace {
 public:
  // `path` as for load_scenario, but a folder means its space.yaml. Throws ConfigError with every problem: unknown keys
  // and wrong values of any axis; contradictions between values are a matter of single configurations.
  static SearchSpace load(const std::string& path, const std::vector<std::string>& overrides = {});
  static SearchSpace parse(const std::string& text, const std::string& file_name = {},
                           const std::vector<std::string>& overrides = {});

  // The same space with some keys set.
  SearchSpace with(const std::vector<std::string>& overrides) const { return parse(text_, file_, overrides); }

  const std::vector<SpaceAxis>& axes() const { return axes_; }
  const std::string& file() const { return file_; }
  const std::string& text() const { return text_; }  // as read, without overrides
  std::int64_t size() const { return size_; }
  std::vector<int> choice(std::int64_t index) const;  // position on every axis
  std::string id(std::int64_t index) const;           // 16 hexadecimal digits
  std::string digest() const;                         // of the whole space: tells whether a file of rows belongs to it

  // The complete scenario, read and checked as `run` would; throws ConfigError when it contradicts itself.
  Scenario scenario(std::int64_t index) const;
  std::string scenario_text(std::int64_t index) const;  // as YAML; reading it back gives the same scenario

  // Fast path without checks: `base` has the first value of every axis; apply() changes one axis of a copy of it.
  const Scenario& base() const { return *base_; }
  void apply(std::size_t axis, int value, Scenario& scenario) const;

 private:
  struct Setter;  // copies one value's fields from a parsed holder
  SearchSpace() = default;
  void find_axes(std::vector<Problem>& problems);
  void find_variants(std::vector<Problem>& problems);
  void add_axis(const Field& field, const std::shared_ptr<YamlValue>& value, std::vector<Problem>& problems);
  void read_base(const std::string& text);
  void read_setters(std::vector<Problem>& problems);
  void complete_variants(std::vector<std::shared_ptr<const Setter>>& setters) const;
  std::shared_ptr<const Setter> read_setter(const SpaceValue& value, std::vector<Problem>& problems) const;

  std::string file_, text_;
  std::shared_ptr<YamlValue> root_;  // without `variants`
  std::vector<SpaceAxis> axes_;
  std::int64_t size_ = 1;
  std::shared_ptr<const Scenario> base_;
  std::vector<std::vector<std::shared_ptr<const Setter>>> setters_;  // by axis, value
  bool source_given_ = false;  // moe.routing.source is written: skew_sigma does not choose it
};

}  // namespace k3sim
