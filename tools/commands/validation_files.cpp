#include "tools/commands/validation_files.h"

#include "tools/commands/report_files.h"

namespace k3sim {

void write_validation(const std::string& folder, ValidationPageInput input, const CommandContext& context) {
  if (input.scored.empty()) input.scored = input.rows;
  input.command = context.command;
  OutputFolder out(folder);
  add_results(out, {{"validation.csv", validation_table(input.rows)}}, validation_page(input));
  out.commit();
}

void write_validation(const std::string& folder, const std::string& what, const std::vector<ValidationRow>& rows,
                      const std::vector<std::string>& notes, const ErrorSummary& summary,
                      const CommandContext& context) {
  ValidationPageInput input;
  input.what = what;
  input.notes = notes;
  input.summary = summary;
  for (const ValidationRow& r : rows) input.rows.push_back(&r);
  write_validation(folder, std::move(input), context);
}

}  // namespace k3sim
