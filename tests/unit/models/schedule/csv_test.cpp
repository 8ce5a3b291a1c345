#include "models/schedule/csv.h"

#include <doctest/doctest.h>

#include <string>

#include "models/schedule/registry.h"

using namespace k3sim;

namespace {
// The first problem's text, or "" if the text is fine.
std::string problem_of(const std::string& text) {
  const CsvSchedule file = parse_schedule_csv(text, "x.csv");
  return file.problems.empty() ? "" : file.problems.front().what;
}
bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}
}  // namespace

TEST_CASE("schedule csv: trailing characters are an error, not ignored as PyTorch's prefix match does") {
  CHECK(mentions(problem_of("0F0,0F0x\n"), "trailing characters"));
  CHECK(mentions(problem_of("0F0,0B0 1\n"), "trailing characters"));
  CHECK(mentions(problem_of("0F0,0UNSHARD1\n"), "takes no micro-batch"));
  CHECK(mentions(problem_of("0F,0B0\n"), "needs a micro-batch"));
  CHECK(mentions(problem_of("F0\n"), "expected STAGE TYPE"));
  CHECK(mentions(problem_of("0Q0\n"), "unknown action type"));
}

TEST_CASE("schedule csv: numbers beyond any real job are refused, not allocated") {
  CHECK(mentions(problem_of("999999F0\n"), "stage 999999"));
  CHECK(mentions(problem_of("0F99999999999999999999\n"), "micro-batch"));
}

TEST_CASE("schedule csv: overlaps hold exactly two plain compute actions") {
  CHECK(problem_of("0F0,0F1,(0F2;0B0)OVERLAP_F_B\n").empty());
  CHECK(mentions(problem_of("(0F2;0B0;0F3)OVERLAP_F_B\n"), "exactly two"));
  CHECK(mentions(problem_of("(0F2)OVERLAP_F_B\n"), "exactly two"));
  CHECK(mentions(problem_of("(0F2;0SEND_F1)OVERLAP_F_B\n"), "only F, I, B and W"));
  CHECK_FALSE(problem_of("(0F2;0B0)OVERLAP_F_Bx\n").empty());
  CHECK_FALSE(problem_of("((0F2;0B0)OVERLAP_F_B;0F1)OVERLAP_F_B\n").empty());
}

TEST_CASE("schedule csv: every problem is placed by line and column") {
  const CsvSchedule file = parse_schedule_csv("0F0,0B0\n1F0,1X0\n", "x.csv");
  REQUIRE(file.problems.size() == 1);
  CHECK(file.problems[0].rank == 1);
  CHECK(file.problems[0].index == 1);
  CHECK(file.places[0].line == 2);
  CHECK(file.places[0].column == 5);
}

TEST_CASE("schedule csv: dialects are told apart") {
  CHECK(parse_schedule_csv("0F0,0B0\n", "x").dialect() == "compute_only");
  CHECK(parse_schedule_csv("0F0,0I0,0W0\n", "x").dialect() == "compute_only");
  CHECK(parse_schedule_csv("0F0,0BW0\n", "x").dialect() == "legacy_compute_only");
  CHECK(parse_schedule_csv("0F0,0B0,0W0\n", "x").dialect() == "legacy_compute_only");
  CHECK(parse_schedule_csv("0UNSHARD,0F0,0B0\n", "x").dialect() == "compute_comms");
  CHECK(mentions(problem_of("0F0,0BW0,0F1,0I1,0W1\n"), "mixes BW"));
  // In the oldest dialect B is the input gradient.
  CHECK(parse_schedule_csv("0F0,0B0,0W0\n", "x").schedule.actions[0][1].kind == ActionKind::kInputGrad);
  CHECK(parse_schedule_csv("0F0,0BW0\n", "x").schedule.actions[0][1].kind == ActionKind::kBackward);
}

TEST_CASE("schedule csv: idle cells survive in compute_only and are refused in compute_comms") {
  const CsvSchedule file = parse_schedule_csv(",0F0,,0B0\r\n1F0,1B0,,\r\n", "x");
  CHECK(file.problems.empty());
  CHECK(file.crlf);
  CHECK(write_schedule_csv(file.schedule, {.crlf = true}) == ",0F0,,0B0\r\n1F0,1B0,,\r\n");
  CHECK(mentions(problem_of("0F0,0SEND_F0,,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "idle cell"));
}

TEST_CASE("schedule csv: blanks, quotes and leading zeros are read but not called exact") {
  for (const char* text : {" 0F0,0B0\n", "\"0F0\",0B0\n", "00F0,0B0\n", "0F0,0B00\n"}) {
    const CsvSchedule file = parse_schedule_csv(text, "x");
    CHECK(file.problems.empty());
    CHECK_FALSE(file.exact);
    CHECK(write_schedule_csv(file.schedule, {.crlf = false}) == "0F0,0B0\n");
  }
}

TEST_CASE("schedule csv: what the format cannot say is refused with the reason") {
  CHECK(mentions(csv_refusal(make_schedule({.name = "dualpipe", .ranks = 4, .microbatches = 8})), "dualpipe_v"));
  CHECK(mentions(csv_refusal(make_schedule({.name = "bpipe", .ranks = 4, .microbatches = 8})), "offload"));
  CHECK(mentions(csv_refusal(make_schedule({.name = "seq1f1b", .ranks = 4, .microbatches = 8})), "slices"));
  CHECK_THROWS_AS(write_schedule_csv(make_schedule({.name = "dualpipe", .ranks = 4, .microbatches = 8})), ConfigError);
  CHECK(csv_refusal(make_schedule({.name = "zb_v", .ranks = 4, .microbatches = 8})).empty());
}

TEST_CASE("schedule csv: every expressible schedule reads back as it was written") {
  for (const ScheduleInfo& info : schedule_registry()) {
    const Schedule s =
        make_schedule({.name = info.name, .ranks = 4, .chunks = info.fixed_chunks ? 1 : 2, .microbatches = 8});
    if (!csv_refusal(s).empty()) continue;
    CAPTURE(info.name);
    const CsvSchedule again = parse_schedule_csv(write_schedule_csv(s), "x");
    CHECK(again.problems.empty());
    CHECK_FALSE(again.legacy);
    Schedule bare = s;
    for (auto& row : bare.actions)
      for (Action& a : row) a.flags = kFlagNone;
    CHECK(again.schedule.actions == bare.actions);
    CHECK(again.schedule.rank_of_stage == s.rank_of_stage);
  }
}
