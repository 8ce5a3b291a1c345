#include "models/schedule/timeline.h"

#include <doctest/doctest.h>

#include <string>

#include "models/schedule/draw.h"
#include "models/schedule/lower.h"
#include "models/schedule/registry.h"

using namespace k3sim;

namespace {
ScheduleCosts uniform(int f, int i, int w, int transfer = 0) {
  return {.stages = {{Time::us(f), Time::us(i), Time::us(w), Time::us(transfer)}}};
}
}  // namespace

TEST_CASE("timeline: busy and the five kinds of idle add up to the makespan on every rank") {
  for (const ScheduleInfo& info : schedule_registry()) {
    const Schedule s =
        make_schedule({.name = info.name, .ranks = 4, .chunks = info.fixed_chunks ? 1 : 2, .microbatches = 12});
    ScheduleCosts costs{.stages = {}};
    for (int stage = 0; stage < s.stages; ++stage)
      costs.stages.push_back({Time::us(10 + stage % 3), Time::us(11 + stage % 2), Time::us(7), Time::us(2)});
    const Timeline t = time_schedule(s, costs);
    CAPTURE(info.name);
    REQUIRE(t.complete);
    for (const RankTimeline& r : t.ranks) {
      CHECK(r.busy + r.idle.total() == t.makespan);
      for (const Time part :
           {r.idle.warm_up, r.idle.cool_down, r.idle.communication, r.idle.imbalance, r.idle.dependency})
        CHECK(part >= Time());
    }
  }
}

TEST_CASE("timeline: a uniform pipeline without transfers idles only in warm-up and cool-down") {
  const Timeline t =
      time_schedule(make_schedule({.name = "1f1b", .ranks = 4, .microbatches = 16}), uniform(10, 10, 10));
  for (const RankTimeline& r : t.ranks) {
    CHECK(r.idle.communication == Time());
    CHECK(r.idle.imbalance == Time());
    CHECK(r.idle.dependency == Time());
  }
  CHECK(t.ranks[3].idle.warm_up == Time::us(30));
}

TEST_CASE("timeline: a slow stage shows as imbalance of the others, a slow link as communication") {
  const Schedule s = make_schedule({.name = "1f1b", .ranks = 4, .microbatches = 16});
  ScheduleCosts slow{.stages = std::vector<StageTimes>(4, {Time::us(10), Time::us(10), Time::us(10), Time()})};
  slow.stages[2].forward = Time::us(20);
  const Timeline imbalanced = time_schedule(s, slow);
  CHECK(imbalanced.ranks[1].idle.imbalance > Time::us(80));
  CHECK(imbalanced.ranks[1].idle.communication == Time());
  const Timeline linked = time_schedule(s, uniform(10, 10, 10, 4));
  CHECK(linked.ranks[1].idle.communication > Time::us(20));
  CHECK(linked.ranks[1].idle.imbalance == Time());
}

TEST_CASE("timeline: explicit sends and receives give the same times as implicit transfers") {
  for (const char* name : {"1f1b", "zb_v", "interleaved", "dualpipe_v"}) {
    const Schedule s = make_schedule(
        {.name = name, .ranks = 4, .chunks = std::string(name) == "interleaved" ? 2 : 1, .microbatches = 8});
    CAPTURE(name);
    // The receive is posted where the lowering put it, which may be after the data is ready: never earlier than
    // implicit.
    CHECK(time_schedule(lower_schedule(s), uniform(10, 12, 7)).makespan ==
          time_schedule(s, uniform(10, 12, 7)).makespan);
    CHECK(time_schedule(lower_schedule(s), uniform(10, 12, 7, 3)).makespan >=
          time_schedule(s, uniform(10, 12, 7, 3)).makespan);
  }
}

TEST_CASE("timeline: an overlapped pair takes its measured share of the two parts") {
  const Schedule s = make_schedule({.name = "dualpipe_v", .ranks = 4, .microbatches = 16});
  ScheduleCosts costs = uniform(10, 10, 10);
  const Timeline apart = time_schedule(s, costs);
  costs.overlap_factor = 0.8;
  const Timeline together = time_schedule(s, costs);
  CHECK(together.makespan < apart.makespan);
  for (std::size_t r = 0; r < 4; ++r) {
    std::int64_t pairs = 0;
    for (const Action& a : s.actions[r]) pairs += a.kind == ActionKind::kOverlap;
    CHECK(pairs > 10);
    CHECK(apart.ranks[r].busy - together.ranks[r].busy == Time::us(6) * pairs);  // 10 + 20 us, a fifth hidden
  }
}

TEST_CASE("timeline: a deadlock is reported with the place where every rank stands") {
  Schedule s = make_schedule({.name = "1f1b", .ranks = 2, .microbatches = 2});
  std::swap(s.actions[0][1], s.actions[0][2]);  // 0F0 0B0 0F1 0B1
  std::swap(s.actions[1][1], s.actions[1][2]);  // 1F0 1F1 1B0 1B1
  const Timeline t = time_schedule(s, uniform(1, 1, 1));
  CHECK_FALSE(t.complete);
  CHECK(t.blocked_at == std::vector<int>{1, 1});
}

TEST_CASE("drawing: one row per rank, time to scale") {
  const Schedule s = make_schedule({.name = "1f1b", .ranks = 2, .microbatches = 2});
  const Timeline t = time_schedule(s, uniform(1, 1, 1));
  CHECK(draw_text(s, t) == "   0 |F0-F1-......B0----...B1----\n   1 |...F0-B0----F1-B1----\n");
  const std::string svg = draw_svg(s, t);
  CHECK(svg.rfind("<svg", 0) == 0);
  CHECK(svg.find("<title>1B0 0.0020 ... 0.0040 ms</title>") != std::string::npos);
  std::size_t boxes = 0;
  for (std::size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1)) ++boxes;
  CHECK(boxes == 8);
}
