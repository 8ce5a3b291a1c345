// The one table of every key of a scenario: path, type, default, allowed values and meaning. The loader, the JSON
// Schema
// (`k3sim schema`) and `--set` all come from it, so that they cannot disagree. Defaults are those of struct Scenario.
// To add a key: a member in scenario.h and one entry in field_table.cpp.
// Source: product-spec section 3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/config/scenario.h"

namespace k3sim {

// Finds the member in a scenario; the alternative is the type.
using FieldRef =
    std::variant<bool& (*)(Scenario&), int& (*)(Scenario&), std::int64_t& (*)(Scenario&), std::uint64_t& (*)(Scenario&),
                 double& (*)(Scenario&), std::string& (*)(Scenario&), Bytes& (*)(Scenario&),
                 std::optional<Bytes>& (*)(Scenario&), std::optional<Bandwidth>& (*)(Scenario&),
                 std::vector<int>& (*)(Scenario&), std::vector<std::int64_t>& (*)(Scenario&),
                 std::vector<std::string>& (*)(Scenario&), std::vector<TensorRule>& (*)(Scenario&)>;

struct Field {
  std::string path;  // "parallel.tp"
  FieldRef ref;
  std::string description;
  std::optional<double> min = {};  // of the number, or of each number of a list; quantities in base units
  std::optional<double> max = {};
  std::string noun = {};                  // counts: the word accepted behind the number ("tokens")
  std::string zero_word = {};             // the word that means 0 ("auto")
  std::vector<std::string> choices = {};  // words: the closed list
  std::string folder = {};                // words: names of the YAML files of this data folder, or a path
};

const std::vector<Field>& scenario_fields();

// Words of TensorRule::policy: those of models/memory/storage_rules.h.
const std::vector<std::string>& tensor_policies();

// Schedules a scenario may name. 1f1b with vpp > 1 is Megatron's interleaved schedule.
struct ScheduleChoice {
  std::string name;
  int chunks;         // model chunks per rank (vpp) that it takes; 0: any number
  bool takes_warmup;  // extra_warmup changes it
  bool splits_wgrad;  // it can keep weight gradients apart
};
const std::vector<ScheduleChoice>& schedule_choices();

// The default as it would be written in YAML; empty when the key is absent by default.
std::string default_text(const Field& field);

// JSON Schema (draft 2020-12) of scenario.yaml.
std::string scenario_schema();

}  // namespace k3sim
