// k3sim validate --kind schedule: schedules against 1F1B of the same model, their memory, and DeepSeek-V3's DualPipe.
// Source: product-spec sections 2 and 7; issue 5.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/case_file.h"

namespace k3sim {

struct CommandContext;

// Returns the exit code. `folder` empty: no files.
int run_validate_schedule(const std::vector<Case>& cases, int threads, const std::string& folder,
                          CommandContext& context);

}  // namespace k3sim
