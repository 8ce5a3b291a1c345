// The real schedule files: read, linted, timed, written back byte for byte, and re-derived by our own generators.
// Data: PyTorch's and torchtitan's test artifacts (BSD-3) as published; see engine-design section 11.1.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "models/schedule/csv.h"
#include "models/schedule/lint.h"
#include "models/schedule/lower.h"
#include "models/schedule/registry.h"
#include "models/schedule/timeline.h"

using namespace k3sim;

namespace {
const char* const kFiles[] = {"dualpipev_4rank_10mb.csv", "torchtitan_custom_2rank.csv",
                              "zb1p_2rank_legacy_dialect_comms.csv"};

std::string path_of(const std::string& name) {
  return std::string(K3SIM_TEST_DATA "/schedules/") + name;
}

std::string text_of(const std::string& name) {
  std::ifstream in(path_of(name), std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
}  // namespace

TEST_CASE("sample files: all load, lint clean and can be timed") {
  for (const char* name : kFiles) {
    CAPTURE(name);
    const CsvSchedule file = read_schedule_csv(path_of(name));
    const LintReport report = lint_schedule(file.schedule);
    CHECK_MESSAGE(report.valid, report.text);
    CHECK(time_schedule(file.schedule, {.stages = {StageTimes{}}}).complete);
  }
}

TEST_CASE("sample files: the current dialect round-trips byte for byte") {
  for (const char* name : {kFiles[0], kFiles[1]}) {
    const CsvSchedule file = read_schedule_csv(path_of(name));
    CHECK(file.exact);
    CHECK(write_schedule_csv(file.schedule, {.crlf = file.crlf, .final_newline = file.final_newline}) == text_of(name));
  }
}

TEST_CASE("sample files: sizes and dialects are inferred") {
  const CsvSchedule v = read_schedule_csv(path_of(kFiles[0]));
  CHECK(v.schedule.ranks == 4);
  CHECK(v.schedule.stages == 8);
  CHECK(v.schedule.microbatches == 10);
  CHECK(v.dialect() == "compute_only");
  CHECK(read_schedule_csv(path_of(kFiles[1])).schedule.microbatches == 8);
  CHECK(read_schedule_csv(path_of(kFiles[2])).dialect() == "legacy_compute_comms");
}

TEST_CASE("legacy dialect: BW becomes the full backward and B the input gradient") {
  const CsvSchedule file = read_schedule_csv(path_of(kFiles[2]));
  std::size_t full = 0, input = 0;
  for (const auto& row : file.schedule.actions)
    for (const Action& a : row) {
      full += a.kind == ActionKind::kBackward;
      input += a.kind == ActionKind::kInputGrad;
    }
  CHECK(full == 16);   // stages 0 and 2
  CHECK(input == 16);  // stages 1 and 3
  // Written in the current dialect and read again it is the same schedule, no longer legacy.
  const CsvSchedule again = parse_schedule_csv(write_schedule_csv(file.schedule), "again.csv");
  CHECK(again.dialect() == "compute_comms");
  CHECK(again.schedule.actions == file.schedule.actions);
}

TEST_CASE("lowering: sends and receives land exactly where PyTorch put them") {
  const CsvSchedule file = read_schedule_csv(path_of(kFiles[2]));
  const Schedule again = lower_schedule(compute_only(file.schedule), {.unshard = false, .reduce_grad = false});
  CHECK(again.actions == file.schedule.actions);
}

TEST_CASE("dualpipe_v: our generator gives PyTorch's published order, action by action") {
  const Schedule mine = make_schedule({.name = "dualpipe_v", .ranks = 4, .microbatches = 10});
  CHECK(mine.actions == read_schedule_csv(path_of(kFiles[0])).schedule.actions);
}
