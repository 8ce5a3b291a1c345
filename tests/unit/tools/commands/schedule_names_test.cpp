// The scenario's list of schedules (models/config) and the registry (models/schedule) must name the same ones.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "models/config/field_table.h"
#include "models/schedule/registry.h"

using namespace k3sim;

TEST_CASE("schedules: a scenario may name exactly the schedules that the program can generate") {
  std::set<std::string> offered, known;
  for (const ScheduleChoice& choice : schedule_choices()) offered.insert(choice.name);
  for (const ScheduleInfo& info : schedule_registry()) known.insert(info.name);
  CHECK(offered == known);
}
