// Reads the fields of the table out of a YAML document into a Scenario: kinds, units, ranges, closed lists of words.
// Source: product-spec section 3.
#pragma once

#include "models/config/field_table.h"
#include "models/config/yaml_reader.h"

namespace k3sim {

// The node at a dotted path, absent when any part is.
YamlNode node_at(const YamlNode& root, const std::string& path);

// Leaves the default when the key is absent; wrong values become problems of the document.
void read_field(const Field& field, const YamlNode& root, Scenario& scenario);

}  // namespace k3sim
