// A trace in the Chrome JSON form: ph "X" slices, "M" names and order, "C" counters, "s"/"f" arrows; microseconds with
// three decimals. Opens in ui.perfetto.dev and chrome://tracing.
// Source: Trace Event Format (Google, 2016); engine-design section 12. Meant for at most kMaxJsonSlices slices.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace k3sim {

std::string chrome_json(const Trace& trace);

// Text in JSON quotes; control characters escaped, UTF-8 passed through.
std::string json_quoted(std::string_view text);

}  // namespace k3sim
