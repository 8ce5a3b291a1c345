// The values that one entry of a space stands for: a list, a range or `auto`. Internal to models/config.
//   {from: 1, to: 8, step: x2} -> 1, 2, 4, 8     {from: 8, to: 32, step: +8} -> 8, 16, 24, 32
//   auto: closed lists of words and true/false give every choice; parallel degrees give those that can divide what they
//   split (pp: divisors of the GPUs up to the layers, ep: divisors of the experts, tp: powers of two up to a node, ...)
// Source: product-spec section 3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config/field_table.h"
#include "sim/base/error.h"

namespace k3sim {

struct YamlValue;

// Not an axis: nothing. Wrong ranges become problems and give an empty list.
std::optional<std::vector<std::string>> axis_values(const Field& field, const YamlValue& value,
                                                    std::vector<Problem>& problems);
bool is_automatic(const Field& field, const YamlValue& value);
// Values of `auto` given the rest of the scenario. Empty when the key has no automatic values.
std::vector<std::string> automatic_values(const Field& field, const Scenario& scenario);

}  // namespace k3sim
