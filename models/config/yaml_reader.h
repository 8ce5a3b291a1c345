// Typed access to a YAML file in which every value knows its file, line, column and dotted key path.
// Reading never throws: every wrong value, missing key and (at finish) every key that nobody asked for becomes a
// Problem, so that the user sees all mistakes of a file at once. Only syntax errors and unreadable files throw at once.
//
//   YamlDocument doc = YamlDocument::load("scenario.yaml");
//   doc.set("--set", "parallel.tp=8");                    // overrides, before reading
//   YamlNode p = doc.root().child("parallel");            // absent nodes may be read too: nothing is found there
//   p.read("tp", config.tp);                              // optional: leaves config.tp when the key is absent
//   p.require("order", config.order);                     // a Problem when absent
//   if (config.tp < 1) p.child("tp").problem("must be at least 1");
//   doc.finish();                                         // unknown keys (did-you-mean) and all problems ->
//   ConfigError
//
// Quantities (Bytes, Time, Bandwidth, FlopRate, Flops) need their unit: see sim/base/units_text.h.
// Source: product-spec section 2 (errors) and 3 (scenario format).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace k3sim {

struct YamlValue;  // yaml_tree.h
struct YamlState;  // problems and the keys that were asked for

class YamlNode {
 public:
  enum class Kind : std::uint8_t { absent, null, scalar, list, map };

  Kind kind() const;
  bool present() const { return kind() != Kind::absent; }
  bool is_map() const { return kind() == Kind::map; }
  bool is_list() const { return kind() == Kind::list; }
  bool is_scalar() const { return kind() == Kind::scalar; }
  Place place() const;                             // of the value; of the nearest parent when absent
  const std::string& key() const { return key_; }  // dotted path: "parallel.tp", "layers[3].kind"
  std::string name() const;                        // last component of key()
  std::string text() const;                        // raw text of a scalar, else empty

  // The value under `name`, counted as asked for; absent when there is none. A Problem when this is not a map.
  YamlNode child(std::string_view name) const;
  bool has(std::string_view name) const;  // counts as asked for
  std::vector<YamlNode> items() const;    // of a list; a Problem when present and no list
  std::vector<YamlNode> entries() const;  // of a map with free keys, in file order; all count as asked for
  void accept_all() const;                // nothing below this node is reported as unknown

  // Converts this value; false and a Problem when it is of another kind. Integers also accept "8192 tokens" when
  // to_count is used with that noun.
  bool to(std::string& out) const;
  bool to(bool& out) const;
  bool to(int& out) const;
  bool to(std::int64_t& out) const;
  bool to(std::uint64_t& out) const;
  bool to(double& out) const;
  bool to(Bytes& out) const;
  bool to(Time& out) const;
  bool to(Bandwidth& out) const;
  bool to(FlopRate& out) const;
  bool to(Flops& out) const;
  bool to_count(std::int64_t& out, std::string_view noun) const;
  template <class T>
  bool to(std::optional<T>& out) const {
    T value{};
    if (!to(value)) return false;
    out = value;
    return true;
  }
  template <class T>
  bool to(std::vector<T>& out) const {
    std::vector<T> values;
    bool good = is_list();
    for (const YamlNode& item : items()) {
      T value{};
      good = item.to(value) && good;
      values.push_back(value);
    }
    if (good) out = values;
    return good;
  }

  // True when the key is there and its value was good.
  template <class T>
  bool read(std::string_view name, T& out) const {
    const YamlNode value = child(name);
    return value.present() && value.to(out);
  }
  template <class T>
  bool require(std::string_view name, T& out) const {
    const YamlNode value = child(name);
    if (!value.present()) return missing(name), false;
    return value.to(out);
  }

  // Adds a Problem at this value's place and key (identical ones only once).
  void problem(std::string what, std::string hint = {}) const;

 private:
  friend class YamlDocument;
  YamlNode(std::shared_ptr<YamlState> state, std::shared_ptr<const YamlValue> value, std::string key, Place parent);
  void missing(std::string_view name) const;
  bool wrong_kind(std::string_view needed) const;
  template <class T, class Parse>
  bool to_quantity(T& out, const Parse& parse, std::string_view needed) const;

  std::shared_ptr<YamlState> state_;
  std::shared_ptr<const YamlValue> value_;  // null: absent
  std::string key_;
  Place parent_;  // where to point when absent
};

class YamlDocument {
 public:
  // Throw ConfigError when the file cannot be read or is not YAML.
  static YamlDocument load(const std::string& path);
  static YamlDocument parse(const std::string& text, const std::string& file_name = {});

  YamlNode root() const;
  const std::string& file() const;

  // Sets one value from "a.b=c" (c in YAML flow form); problems with it are placed at `origin` (for example "--set").
  void set(const std::string& origin, const std::string& assignment);

  void problem(Problem p);
  const std::vector<Problem>& problems() const;
  void find_unknown_keys() const;  // adds a Problem for every key never asked for so far
  void throw_if_problems() const;  // all so far, in file order
  void finish() const;             // find_unknown_keys(), throw_if_problems()
  std::string to_text() const;     // the document after overrides, as YAML

 private:
  explicit YamlDocument(std::shared_ptr<YamlState> state) : state_(std::move(state)) {}
  std::shared_ptr<YamlState> state_;
};

}  // namespace k3sim
