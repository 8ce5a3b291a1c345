#include "models/schedule/schedule_file.h"

#include <doctest/doctest.h>

#include <string>

#include "models/schedule/registry.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {
const std::string kFile = K3SIM_TEST_DATA "/schedules/dualpipev_4rank_10mb.csv";
}

TEST_CASE("schedule file: a file that fits the job replaces the named schedule") {
  const Schedule s = read_schedule_for(kFile, {.ranks = 4, .chunks = 2, .microbatches = 10});
  CHECK(s.actions == make_schedule({.name = "dualpipe_v", .ranks = 4, .microbatches = 10}).actions);
}

TEST_CASE("schedule file: every size that does not fit is named") {
  try {
    read_schedule_for(kFile, {.ranks = 8, .chunks = 1, .microbatches = 12});
    FAIL("accepted");
  } catch (const ConfigError& e) {
    CHECK(e.problems().size() == 2);  // eight stages happen to fit 8 x 1
    CHECK(std::string(e.what()).find("has 10 micro-batches, but the scenario has 12") != std::string::npos);
  }
}

TEST_CASE("schedule file: transfers of a lowered file are dropped, to be placed anew") {
  const Schedule s = read_valid_schedule(K3SIM_TEST_DATA "/schedules/zb1p_2rank_legacy_dialect_comms.csv");
  for (const auto& row : s.actions)
    for (const Action& a : row) CHECK(is_compute(a.kind));
}

TEST_CASE("schedule file: a missing file is an error with its path") {
  CHECK_THROWS_WITH_AS(read_valid_schedule("no/such.csv"), "error: no/such.csv: cannot open the schedule file",
                       ConfigError);
}
