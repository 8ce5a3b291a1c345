// All schedules by name, with what they promise. `make_schedule` is the only entry the rest of the program needs.
// Source: engine-design section 11 (table), the papers named in the entries.
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct ScheduleInfo {
  const char* name;
  const char* description;
  const char* bubble;  // closed form; F, B, W per rank and micro-batch, p ranks, m micro-batches, v chunks
  const char* basis;   // who says so (published, derived: proof in the generator's header), and for which m and times
  const char* memory;  // peak activations, in micro-batches of one rank's layers
  const char* source;
  Schedule (*generate)(const ScheduleSpec&);
  int fixed_chunks;  // stages per rank that the schedule prescribes; 0: spec.chunks
  bool takes_extra_warmup = false;
};

const std::vector<ScheduleInfo>& schedule_registry();
// Throws ConfigError with a did-you-mean for an unknown name.
const ScheduleInfo& find_schedule(const std::string& name);
// Stages per rank that make_schedule(spec) will place, without making it.
int stages_per_rank(const ScheduleSpec& spec);
// Throws ConfigError for an unknown name or a combination the schedule does not define.
Schedule make_schedule(const ScheduleSpec& spec);

}  // namespace k3sim
