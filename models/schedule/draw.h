// Pictures of schedules: for the terminal, one row per rank, and as SVG with time to scale.
// Colours follow the field's habit: forward blue, input gradient or full backward green, weight gradient orange.
// Source: issue 5; the look of the figures in arXiv 2104.04473 and 2401.10241.
#pragma once

#include <map>
#include <string>

#include "models/schedule/timeline.h"

namespace k3sim {

struct DrawOptions {
  int width = 160;      // characters (terminal) or pixels of the time axis (SVG)
  bool colour = false;  // ANSI colours
};

// One row per rank, one column per time unit when the time fits the width: "F12" letters with micro-batch numbers where
// there is room, else the letter alone. Requires: timeline of this schedule.
std::string draw_text(const Schedule& schedule, const Timeline& timeline, const DrawOptions& options = {});
// Standalone SVG, time to scale, with a tooltip (stage, micro-batch, start, end) per action and an axis in
// milliseconds.
std::string draw_svg(const Schedule& schedule, const Timeline& timeline, const DrawOptions& options = {});

// How many actions carry which annotation.
struct ScheduleNotes {
  int redispatches = 0, routed_weights = 0, beside_send = 0, gathers = 0, reductions = 0, offloads = 0;
};
ScheduleNotes schedule_notes(const Schedule& schedule);
std::string annotation_text(const Action& action);  // "dispatch re-run, ..."; empty without annotations
// What happens inside the actions when they are annotated; empty otherwise.
std::string draw_phases(const Schedule& schedule);

// The last actions of each named rank up to its failing index, that one marked: "rank 1 | ... 1F0 >1RECV_B0<".
std::string draw_prefix(const Schedule& schedule, const std::map<int, int>& failing_index);

}  // namespace k3sim
