// What sources of the published runs say beyond the fields of cases.yaml: dispatcher, overlap, schedule, token drop,
// recomputation and layers per stage, each entry with the place where it was read. Lies beside the case file as
// supplement.yaml; absent: nothing. Entries: cases (ids, a trailing * for any ending), source, and at least one of
// these. Every pattern must match. Source: the entries themselves.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/case_file.h"

namespace k3sim {

// An id, or with a trailing * any that begins so.
bool matches_case(const std::string& pattern, const std::string& id);

// Throws ConfigError with file and line.
void apply_supplement(const std::string& case_path, std::vector<Case>& cases);

}  // namespace k3sim
