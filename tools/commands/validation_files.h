// The files of `validate --out`: validation.csv, its data dictionary and the report. Source: product-spec section 2.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/command.h"
#include "tools/result_pages/validation_page.h"

namespace k3sim {

// `scored` counts in the answer; empty: all rows do.
void write_validation(const std::string& folder, ValidationPageInput input, const CommandContext& context);
void write_validation(const std::string& folder, const std::string& what, const std::vector<ValidationRow>& rows,
                      const std::vector<std::string>& notes, const ErrorSummary& summary,
                      const CommandContext& context);

}  // namespace k3sim
