// Writing the schedule CSV, and what it cannot say.
// Source: torch/distributed/pipelining/schedules.py (_dump_csv), engine-design section 11.1 (bidirectional schedules).
#include <fmt/format.h>

#include "models/schedule/csv.h"

namespace k3sim {

std::string csv_refusal(const Schedule& schedule) {
  if (schedule.chains > 1)
    return fmt::format("'{}' keeps every stage on {} ranks; the CSV allows one rank per stage (use dualpipe_v)",
                       schedule.name, schedule.chains);
  if (schedule.slices > 1)
    return fmt::format("'{}' cuts sequences into {} slices; the CSV knows whole micro-batches only", schedule.name,
                       schedule.slices);
  for (const auto& row : schedule.actions)
    for (const Action& a : row)
      if (a.kind == ActionKind::kOffload || a.kind == ActionKind::kOnload || a.kind == ActionKind::kVisionForward ||
          a.kind == ActionKind::kVisionBackward)
        return fmt::format("'{}' has the action {}; the CSV has no offload, onload or vision actions", schedule.name,
                           to_string(a));
  return {};
}

std::string write_schedule_csv(const Schedule& schedule, const CsvStyle& style) {
  const std::string refusal = csv_refusal(schedule);
  if (!refusal.empty()) throw ConfigError(refusal, "schedule");
  const char* newline = style.crlf ? "\r\n" : "\n";
  std::string out;
  for (std::size_t rank = 0; rank < schedule.actions.size(); ++rank) {
    if (rank > 0) out += newline;
    const auto& row = schedule.actions[rank];
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += ',';
      out += to_string(row[i]);
    }
  }
  if (style.final_newline) out += newline;
  return out;
}

}  // namespace k3sim
