#include "models/schedule/registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "models/schedule/interleaved.h"
#include "models/schedule/lint.h"
#include "models/schedule/timeline.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {
std::string first_actions(const Schedule& s, std::size_t rank, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += (i > 0 ? " " : "") + to_string(s.actions[rank][i]);
  return out;
}
int forwards_before_backward(const Schedule& s, std::size_t rank) {
  const auto& row = s.actions[rank];
  return static_cast<int>(
      std::find_if(row.begin(), row.end(), [](const Action& a) { return a.kind != ActionKind::kForward; }) -
      row.begin());
}
std::string refusal(const ScheduleSpec& spec) {
  try {
    make_schedule(spec);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("registry: an unknown name gets a suggestion") {
  CHECK(has(refusal({.name = "1f1v"}), "did you mean '1f1b'"));
  CHECK(has(refusal({.name = "zbv"}), "did you mean 'zb_v'"));
}

TEST_CASE("registry: impossible numbers are refused with the reason") {
  CHECK(has(refusal({.name = "1f1b", .ranks = 0}), "schedule.ranks"));
  CHECK(has(refusal({.name = "1f1b", .ranks = 2, .microbatches = 0}), "schedule.microbatches"));
  CHECK(has(refusal({.name = "hanayo", .ranks = 4, .chunks = 3, .microbatches = 8}), "an even number"));
  CHECK(has(refusal({.name = "zb_v", .ranks = 4, .chunks = 3, .microbatches = 8}), "has 2 chunks per rank, got 3"));
  CHECK(has(refusal({.name = "gpipe", .ranks = 4, .microbatches = 8, .extra_warmup = 1}), "fixed warm-up"));
  CHECK(has(refusal({.name = "interleaved", .ranks = 1000, .chunks = 64, .microbatches = 8}), "64000 stages"));
  CHECK(has(refusal({.name = "1f1b", .ranks = 1000, .microbatches = 1000000}), "actions"));
  CHECK(has(refusal({.name = "1f1b", .ranks = 4, .microbatches = 8, .group_size = 3}), "groups of its own"));
  CHECK(has(refusal({.name = "automatic", .ranks = 4, .microbatches = 8, .memory_limit = -1}), "cannot be -1"));
  CHECK(has(refusal({.name = "dualpipe", .ranks = 3, .microbatches = 6}), "even number of ranks"));
  CHECK(has(refusal({.name = "dualpipe_v", .ranks = 4, .microbatches = 7}),
            "at least as many micro-batches as stages (8)"));
}

TEST_CASE("interleaved: Megatron's own example, two ranks, two chunks, five micro-batches in groups of three") {
  // get_schedule_table's documented example: virtual micro-batches 0 1 2 0 1 2 3 4 3 4, chunks 0 0 0 1 1 1 0 0 1 1.
  const auto table = interleaved_table({3, 2}, 2);
  std::string text;
  for (const ChunkStep& t : table) text += std::to_string(t.microbatch) + ":" + std::to_string(t.chunk) + " ";
  CHECK(text == "0:0 1:0 2:0 0:1 1:1 2:1 3:0 4:0 3:1 4:1 ");
}

TEST_CASE("interleaved: an asked-for group size that leaves a last group smaller than the ranks is refused") {
  CHECK(has(refusal({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 9, .group_size = 4}),
            "the last group holds 1"));
  CHECK(refusal({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 9, .group_size = 5}).empty());
  CHECK(
      has(refusal({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 8, .group_size = 3}), "group size"));
}

TEST_CASE("interleaved: extra warm-up adds forwards to every rank, never more than there are") {
  const Schedule plain = make_schedule({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 16});
  const Schedule extra =
      make_schedule({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 16, .extra_warmup = 2});
  for (std::size_t r = 0; r < 4; ++r)
    CHECK(forwards_before_backward(extra, r) == forwards_before_backward(plain, r) + 2);
  const Schedule capped =
      make_schedule({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 4, .extra_warmup = 99});
  CHECK(forwards_before_backward(capped, 0) == 8);
}

TEST_CASE(
    "k3: figure 11 of the report, 14 / 12 / 10 forwards before the first backward for PP3 VP4 and six micro-batches") {
  const Schedule s = make_schedule({.name = "k3", .ranks = 3, .chunks = 4, .microbatches = 6});
  // The steady phase begins with one more forward before the first backward.
  CHECK(forwards_before_backward(s, 0) == 14);
  CHECK(forwards_before_backward(s, 1) == 12);
  CHECK(forwards_before_backward(s, 2) == 10);
}

TEST_CASE("k3: routed weight gradients follow their backward, which re-runs the dispatch") {
  const Schedule s = make_schedule({.name = "k3", .ranks = 2, .chunks = 2, .microbatches = 4});
  for (const auto& row : s.actions)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].kind != ActionKind::kInputGrad) continue;
      CHECK((row[i].flags & kFlagRedispatch) != 0);
      CHECK(row[i + 1].kind == ActionKind::kWeightGrad);
      CHECK(row[i + 1].stage == row[i].stage);
      CHECK((row[i + 1].flags & kFlagRoutedWeights) != 0);
    }
  const Schedule whole =
      make_schedule({.name = "k3", .ranks = 2, .chunks = 2, .microbatches = 4, .split_wgrad = false});
  for (const auto& row : whole.actions)
    for (const Action& a : row) CHECK((a.kind == ActionKind::kForward || a.kind == ActionKind::kBackward));
}

TEST_CASE("1f1b and zb_h1: first actions as in the papers' figures") {
  CHECK(first_actions(make_schedule({.name = "1f1b", .ranks = 4, .microbatches = 8}), 2, 7) ==
        "2F0 2F1 2B0 2F2 2B1 2F3 2B2");
  CHECK(first_actions(make_schedule({.name = "zb_h1", .ranks = 4, .microbatches = 8}), 3, 9) ==
        "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0");
}

TEST_CASE("dualpipe: both directions hold every stage once and share the micro-batches") {
  const Schedule s = make_schedule({.name = "dualpipe", .ranks = 4, .microbatches = 8});
  CHECK(s.chains == 2);
  CHECK(s.rank_of_stage == std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(s.first_microbatch(5) == 4);
  CHECK(s.model_stage(5) == 1);
}

TEST_CASE("automatic: reaches the published optimum where one is known") {
  const int p = 8, m = 32;
  auto bubble = [&](int v, double memory) {
    ScheduleSpec spec{.name = "automatic", .ranks = p, .chunks = v, .microbatches = m, .memory_limit = memory};
    const Schedule s = make_schedule(spec);
    const Timeline t = time_schedule(s, {.stages = {spec.times}});
    CHECK(lint_schedule(s).valid);
    CHECK(t.peak_activations() <= memory * v + 1e-9);
    return t.bubble().microseconds();
  };
  CHECK(bubble(1, p) == doctest::Approx(p - 1));      // ZB-1p: (p-1)(F+B-W)
  CHECK(bubble(1, 2 * p) == doctest::Approx(0.0));    // ZB-2p
  CHECK(bubble(2, p) == doctest::Approx(0.0));        // ZB-V
  CHECK(bubble(2, (p + 2) / 2) <= 3 * p - 7 + 1e-9);  // V-Half
  CHECK(bubble(2, (p + 4) / 3) <= 4 * p - 5 + 1e-9);  // V-Min
}

TEST_CASE("automatic: as good as the zero-bubble authors' heuristic for uneven times") {
  // Bubbles of their scheduler (commit 39f2c186), same times and limits, p = 8 and m = 32; ours may be 10 % above at
  // most.
  struct Row {
    int f, i, w, c;
    double limit;
    double theirs;
  };
  const Row rows[] = {{10, 11, 8, 1, 8, 119},  {10, 11, 8, 1, 12, 73},  {10, 11, 8, 1, 16, 41},
                      {18, 18, 9, 1, 8, 217},  {18, 18, 9, 1, 16, 131}, {10, 14, 10, 2, 12, 90},
                      {10, 14, 10, 2, 16, 46}, {10, 20, 10, 0, 16, 60}};
  for (const Row& r : rows) {
    ScheduleSpec spec{.name = "automatic", .ranks = 8, .microbatches = 32, .memory_limit = r.limit};
    spec.times = {Time::us(r.f), Time::us(r.i), Time::us(r.w), Time::us(r.c)};
    const Timeline t = time_schedule(make_schedule(spec), {.stages = {spec.times}});
    CAPTURE(r.theirs);
    CHECK(t.bubble().microseconds() <= 1.1 * r.theirs);
  }
}

TEST_CASE("automatic: a limit below one micro-batch is refused, uneven stages are accepted") {
  CHECK(has(refusal({.name = "automatic", .ranks = 4, .microbatches = 8, .memory_limit = 0.5}), "memory_limit"));
  ScheduleSpec spec{.name = "automatic", .ranks = 4, .microbatches = 16, .memory_limit = 6};
  for (int i = 0; i < 4; ++i)
    spec.times_per_stage.push_back({Time::us(8 + i), Time::us(9 + i), Time::us(7), Time::us(1)});
  const Schedule s = make_schedule(spec);
  CHECK(lint_schedule(s).valid);
  // No schedule beats the slowest stage's own work.
  const Timeline t = time_schedule(s, {.stages = spec.times_per_stage});
  CHECK(t.makespan >= Time::us(16 * (11 + 12 + 7)));
  CHECK(t.makespan <= Time::us(16 * (11 + 12 + 7) + 3 * (11 + 12 + 2)));
}

TEST_CASE("named schedules at 32 ranks x 256 micro-batches take well under a tenth of a second") {
  for (const ScheduleInfo& info : schedule_registry()) {
    const bool automatic = std::string(info.name) == "automatic";
    const std::clock_t begin = std::clock();  // processor time: other jobs on the machine do not count
    const Schedule s =
        make_schedule({.name = info.name, .ranks = 32, .chunks = info.fixed_chunks ? 1 : 2, .microbatches = 256});
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    CAPTURE(info.name);
    CHECK(s.ranks == 32);
    // Wide margins: the machine may be busy and sanitizers slow things down.
    CHECK(seconds < (automatic ? 5.0 : 1.0));
  }
}
