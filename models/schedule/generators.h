// Pipeline schedule generators, one per file; the registry names, describes and calls them.
// Requires of all: ranks >= 1, microbatches >= 1, chunks >= 1 (the registry checks). A combination that the schedule
// does not define throws ConfigError with the reason. Source: named in each file.
#pragma once

#include "models/schedule/schedule.h"

namespace k3sim {

Schedule generate_gpipe(const ScheduleSpec& spec);
Schedule generate_1f1b(const ScheduleSpec& spec);
Schedule generate_interleaved(const ScheduleSpec& spec);
Schedule generate_looped_bfs(const ScheduleSpec& spec);
Schedule generate_zb_h1(const ScheduleSpec& spec);
Schedule generate_zb_h2(const ScheduleSpec& spec);
Schedule generate_zb_v(const ScheduleSpec& spec);
Schedule generate_v_half(const ScheduleSpec& spec);
Schedule generate_v_min(const ScheduleSpec& spec);
Schedule generate_dualpipe(const ScheduleSpec& spec);
Schedule generate_dualpipe_v(const ScheduleSpec& spec);
Schedule generate_bpipe(const ScheduleSpec& spec);
Schedule generate_seq1f1b(const ScheduleSpec& spec);
Schedule generate_hanayo(const ScheduleSpec& spec);
Schedule generate_automatic(const ScheduleSpec& spec);
Schedule generate_k3(const ScheduleSpec& spec);

// Helpers shared by the generators.

// An empty schedule of spec.ranks ranks with `stages` stages placed rank by rank, round after round (0 1 2 0 1 2).
Schedule looped_schedule(const ScheduleSpec& spec, int chunks);
// The same with every second round reversed (0 1 2 2 1 0): chunks = 2 is a V, 2w is w waves.
Schedule folded_schedule(const ScheduleSpec& spec, int chunks);
// Throws ConfigError "schedule.KEY: schedule 'NAME' WHAT".
[[noreturn]] void refuse_schedule(const ScheduleSpec& spec, const std::string& key, const std::string& what);

}  // namespace k3sim
