// A YAML document as a plain tree whose every value and key knows where it stands. Built from yaml-cpp's event stream
// and not from its Node type, because Node drops duplicate keys and loses the position of keys.
// Anchors and aliases share subtrees; tags, several documents in a file and keys that are no scalars are refused.
// Source: YAML 1.2 as read by yaml-cpp 0.7 (include/yaml-cpp/eventhandler.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace k3sim {

struct YamlValue {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Entry {
    std::string key;
    Place place;  // of the key
    std::shared_ptr<YamlValue> value;
  };
  Kind kind = Kind::null;
  std::string text;     // scalars
  bool quoted = false;  // a quoted "8" is text, not a number
  Place place;
  std::vector<Entry> entries;                     // maps, in file order
  std::vector<std::shared_ptr<YamlValue>> items;  // lists

  const Entry* find(std::string_view key) const;
};

// Parses `text`; duplicate keys go to `problems` (the first one counts). Throws ConfigError on a syntax error.
std::shared_ptr<YamlValue> parse_yaml_tree(const std::string& text, const std::string& file,
                                           std::vector<Problem>& problems);

// Writes a tree as YAML: block style outside, short lists and maps of scalars in one line.
std::string write_yaml_tree(const YamlValue& root);

}  // namespace k3sim
