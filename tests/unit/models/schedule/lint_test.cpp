#include "models/schedule/lint.h"

#include <doctest/doctest.h>

#include <string>

#include "models/schedule/lower.h"
#include "models/schedule/registry.h"

using namespace k3sim;

namespace {
LintReport lint_text(const std::string& text) {
  const CsvSchedule file = parse_schedule_csv(text, "x.csv");
  REQUIRE(file.problems.empty());
  return lint_schedule(file.schedule);
}
bool complains(const std::string& text, const std::string& about) {
  const LintReport report = lint_text(text);
  for (const ScheduleProblem& p : report.problems)
    if (p.what.find(about) != std::string::npos) return true;
  return false;
}
}  // namespace

TEST_CASE("lint: every named schedule is proven valid, also after lowering") {
  for (const ScheduleInfo& info : schedule_registry())
    for (int p : {1, 2, 4, 6}) {
      if (p == 1 && std::string(info.name) == "dualpipe") continue;  // needs two directions
      CAPTURE(info.name);
      CAPTURE(p);
      const Schedule s =
          make_schedule({.name = info.name, .ranks = p, .chunks = info.fixed_chunks ? 1 : 2, .microbatches = 2 * p});
      const LintReport report = lint_schedule(s);
      CHECK_MESSAGE(report.valid, report.text);
      CHECK(report.peak_activations.size() == static_cast<std::size_t>(p));
      if (std::string(info.name) == "bpipe") continue;  // offloads are not compute
      const LintReport lowered = lint_schedule(lower_schedule(s));
      CHECK_MESSAGE(lowered.valid, lowered.text);
      CHECK(lowered.peak_activations == report.peak_activations);
    }
}

TEST_CASE("lint: a stage on two ranks, a missing stage and an idle rank are named") {
  CHECK(complains("0F0,0B0\n0F1,0B1\n", "stage 0 is on rank 0 and on rank 1"));
  CHECK(complains("0F0,0B0\n2F0,2B0\n", "stage 1 of 0 ... 2 is on no rank"));
  CHECK(complains("0F0,0B0\n,\n", "rank 1 does nothing"));
}

TEST_CASE("lint: counts and order within a rank") {
  CHECK(complains("0F0,0B0,0F1\n", "the backward of stage 0, micro-batch 1 is missing"));
  CHECK(complains("0F0,0F0,0B0\n", "is there twice"));
  CHECK(complains("0B0,0F0\n", "comes before its forward"));
  CHECK(complains("0F0,0W0,0I0\n", "comes before its input gradient"));
  CHECK(complains("0F0,0I0,0W0,0B0\n", "repeats a backward"));
  CHECK(complains("0F0,0I0,0F1,0I1,0W1\n", "0W0 is missing"));
}

TEST_CASE("lint: sends and receives must match, be needed, and agree in order") {
  const std::string good = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  CHECK(lint_text(good).valid);
  CHECK(complains("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1RECV_F0 has no matching 0SEND_F0"));
  CHECK(complains("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n", "0RECV_B0 has no matching 1SEND_B0"));
  CHECK(complains("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n", "1B0 needs 1SEND_B0 after it"));
  CHECK(complains("0F0,0SEND_F0,1F0,1RECV_F0,1B0,0B0\n", "nothing is sent"));
  CHECK(
      complains("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
                "list their transfers in different orders"));
}

TEST_CASE("lint: a deadlock is answered with its cycle and the shortest failing prefix") {
  // Rank 0 wants the gradient of micro-batch 0 before it sends micro-batch 1; rank 1 wants micro-batch 1 first.
  const LintReport report = lint_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  CHECK_FALSE(report.valid);
  REQUIRE(report.problems.size() == 2);
  CHECK(report.problems[0].rank == 0);
  CHECK(report.problems[0].index == 1);
  CHECK(report.problems[0].what == "deadlock: rank 0 at 1 (0B0) waits for 1B0 on rank 1 at 2");
  CHECK(report.problems[1].what == "deadlock: rank 1 at 1 (1F1) waits for 0F1 on rank 0 at 2");
  CHECK(report.text.find("rank 0 | 0F0 >0B0<") != std::string::npos);
  CHECK(report.text.find("rank 1 | 1F0 >1F1<") != std::string::npos);
}

TEST_CASE("lint: only the ranks of the cycle are named") {
  const LintReport report = lint_text("0F0,0B0\n1F0,1B0,2F0,2B0\n3F0,3B0\n");
  CHECK_FALSE(report.valid);
  CHECK(report.problems.size() == 1);  // rank 1 waits for its own later action
  CHECK(report.problems[0].what == "deadlock: rank 1 at 1 (1B0) waits for 2B0 on rank 1 at 3");
}

TEST_CASE("lint: reductions and gathered parameters") {
  CHECK(complains("0F0,0REDUCE_GRAD,0B0\n", "before the stage's last weight gradient"));
  CHECK(complains("0F0,1F0,1B0,1REDUCE_GRAD,0B0\n", "the gradients of stage 0 are never reduced"));
  const LintReport none = lint_text("0UNSHARD,0F0,0B0\n");  // as older PyTorch writes it
  CHECK(none.valid);
  CHECK(none.text.find("note: no REDUCE_GRAD") != std::string::npos);
  CHECK(lint_text("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n").notes.empty());
  CHECK(complains("0UNSHARD,0F0,0RESHARD,0B0\n", "runs without gathered parameters"));
  CHECK(complains("0UNSHARD,0UNSHARD,0F0,0B0\n", "there already"));
  CHECK(complains("0F0,0RESHARD,0B0\n", "not gathered"));
}

TEST_CASE("lint: an offloaded activation must come back before its backward") {
  Schedule s = make_schedule({.name = "bpipe", .ranks = 6, .microbatches = 12});
  CHECK(lint_schedule(s).valid);
  std::erase_if(s.actions[0], [](const Action& a) { return a.kind == ActionKind::kOnload && a.microbatch == 4; });
  CHECK_FALSE(lint_schedule(s).valid);
}
