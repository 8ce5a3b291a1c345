// A trace as Perfetto's protobuf, written by hand: interned names, one track per thread and per counter, flow ids on
// the slices they join. About 40 bytes per slice; for traces too large for the JSON form. Source: perfetto
// protos/perfetto/trace/{trace_packet,track_event/track_event,track_event/track_descriptor,
// interned_data/interned_data}.proto (field numbers); engine-design section 12.
#pragma once

#include <string>

#include "sim/trace/trace.h"

namespace k3sim {

std::string perfetto_proto(const Trace& trace);

}  // namespace k3sim
