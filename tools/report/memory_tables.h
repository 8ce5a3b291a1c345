// What a rank's memory is made of, from its emulated request log: memory_peak.csv (who is alive at the peak, and where
// a request did not fit; what lies outside the allocator), memory_curve.csv (bytes by category after every action of
// the second step), the same as JSON for the report, and some lines of text.
// Source: engine-design section 10 ("who was alive at the peak"); models/build/memory_log.h.
#pragma once

#include <string>

#include "models/build/memory_log.h"
#include "models/build/stage_memory.h"
#include "tools/report/csv.h"

namespace k3sim {

struct MemoryView {
  MemoryReport report;               // of the fullest rank
  std::vector<OutsidePart> outside;  // beside the allocator
};

CsvTable memory_peak_table(const MemoryView& view);
CsvTable memory_curve_table(const MemoryView& view);
// {"rank", "requests", "retries", "peak_at", "categories", "curve": [[action, request, allocated, reserved, by
// category ...]], "at_peak": [[what, category, GiB]], "outside": [[what, GiB]], "out_of_memory", "at_failure",
// "knobs"}; bytes in MiB where not said otherwise.
std::string memory_log_json(const MemoryView& view);
// Largest tensors at the peak; where memory runs out and what would save it when it does.
// At most `lines` of text, at least two.
std::string memory_log_text(const MemoryView& view, int lines);

}  // namespace k3sim
