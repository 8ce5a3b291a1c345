// Idle attribution and activation counts on top of the placed actions.
// Imbalance is what an even split of the work would remove: the same order is placed again with every stage at the mean
// time and free transfers; idle that stays is the order's own (dependency).
// Source: issue 5 (idle attribution), engine-design section 11 (activation counts).
#include "models/schedule/timeline.h"

#include <algorithm>
#include <utility>

namespace k3sim {

namespace {
using Row = std::vector<Action>;
using Placed = std::vector<Interval>;

struct Gaps {
  Time warm_up, cool_down, steady;
};

// Idle before the first backward, after the last forward, and between the two.
Gaps idle_gaps(const Row& row, const Placed& placed, Time makespan) {
  Time first_backward = makespan, last_forward;
  bool any_backward = false;
  for (std::size_t i = 0; i < row.size(); ++i)
    for_each_part(row[i], [&](const Action& part) {
      if (yields_input_grad(part.kind) && !any_backward) first_backward = placed[i].start, any_backward = true;
      if (part.kind == ActionKind::kForward) last_forward = placed[i].end;
    });
  Gaps gaps;
  Time free;
  auto add = [&](Time from, Time to) {
    if (to <= from) return;
    if (to <= first_backward)
      gaps.warm_up += to - from;
    else if (from >= last_forward)
      gaps.cool_down += to - from;
    else
      gaps.steady += to - from;
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind)) continue;
    add(free, placed[i].start);
    free = placed[i].end;
  }
  add(free, makespan);
  return gaps;
}

ScheduleCosts without_transfers(ScheduleCosts costs) {
  for (StageTimes& t : costs.stages) t.transfer = Time();
  return costs;
}

ScheduleCosts evened(const ScheduleCosts& costs) {
  StageTimes mean{.forward = Time(), .input_grad = Time(), .weight_grad = Time(), .transfer = Time()};
  const auto n = static_cast<std::int64_t>(costs.stages.size());
  for (const StageTimes& t : costs.stages)
    mean.forward += t.forward, mean.input_grad += t.input_grad, mean.weight_grad += t.weight_grad;
  for (Time* t : {&mean.forward, &mean.input_grad, &mean.weight_grad}) *t = Time::ps(t->picoseconds() / n);
  ScheduleCosts out = costs;
  out.stages = {mean};
  return out;
}

Time makespan_of(const PlacedActions& placed) {
  Time last;
  for (const Placed& row : placed.ranks)
    if (!row.empty()) last = std::max(last, row.back().end);
  return last;
}

// Two counterfactual placements split the steady idle: without transfers, and without transfers at even stage times.
void attribute_idle(const Schedule& s, const ScheduleCosts& costs, Timeline& t) {
  const PlacedActions free_comm = place_actions(s, without_transfers(costs)), even = place_actions(s, evened(costs));
  const Time free_makespan = makespan_of(free_comm), even_makespan = makespan_of(even);
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    IdleTime& idle = t.ranks[r].idle;
    const Gaps real = idle_gaps(s.actions[r], t.ranks[r].actions, t.makespan);
    const Time no_comm = std::min(real.steady, idle_gaps(s.actions[r], free_comm.ranks[r], free_makespan).steady);
    const Time order = std::min(no_comm, idle_gaps(s.actions[r], even.ranks[r], even_makespan).steady);
    idle.warm_up = real.warm_up;
    idle.cool_down = real.cool_down;
    idle.communication = real.steady - no_comm;
    idle.imbalance = no_comm - order;
    idle.dependency = order;
  }
}

struct MemoryEvent {
  Time at;
  int delta;
};

void count_activations(const Schedule& s, Timeline& t) {
  std::vector<std::vector<MemoryEvent>> events(t.ranks.size());
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    int until_input = 0, peak_input = 0;
    for (std::size_t i = 0; i < s.actions[r].size(); ++i) {
      const Action& a = s.actions[r][i];
      const Interval& at = t.ranks[r].actions[i];
      const bool lent = a.other_stage >= 0 && a.kind != ActionKind::kOverlap;
      for_each_part(a, [&](const Action& part) {
        if (part.kind == ActionKind::kForward) events[r].push_back({at.start, 1}), ++until_input;
        if (yields_weight_grad(part.kind)) events[r].push_back({at.end, -1});
        peak_input = std::max(peak_input, until_input);
        if (yields_input_grad(part.kind)) --until_input;
      });
      if (a.kind == ActionKind::kOffload) events[r].push_back({at.end, -1});
      if (a.kind == ActionKind::kOnload) events[r].push_back({at.start, 1});
      if (a.kind == ActionKind::kOffload && lent)
        events[static_cast<std::size_t>(a.other_stage)].push_back({at.end, 1});
      if (a.kind == ActionKind::kOnload && lent)
        events[static_cast<std::size_t>(a.other_stage)].push_back({at.start, -1});
    }
    t.ranks[r].peak_until_input_grad = peak_input;
  }
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    // Releases before acquisitions at the same instant.
    std::stable_sort(events[r].begin(), events[r].end(), [](const MemoryEvent& a, const MemoryEvent& b) {
      return a.at != b.at ? a.at < b.at : a.delta < b.delta;
    });
    int held = 0;
    for (const MemoryEvent& e : events[r]) {
      held += e.delta;
      t.ranks[r].peak_activations = std::max(t.ranks[r].peak_activations, held);
    }
  }
}

void summarise_rank(const Row& row, RankTimeline& t) {
  bool first = true;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind)) continue;
    if (first) t.first_start = t.actions[i].start;
    first = false;
    t.last_end = t.actions[i].end;
    t.busy += t.actions[i].end - t.actions[i].start;
  }
}
}  // namespace

Time Timeline::bubble() const {
  Time most;
  for (const RankTimeline& r : ranks) most = std::max(most, r.bubble());
  return most;
}

Time Timeline::span() const {
  Time most;
  for (const RankTimeline& r : ranks) most = std::max(most, r.last_end - r.first_start);
  return most;
}

int Timeline::peak_activations() const {
  int most = 0;
  for (const RankTimeline& r : ranks) most = std::max(most, r.peak_activations);
  return most;
}

Timeline time_schedule(const Schedule& schedule, const ScheduleCosts& costs) {
  PlacedActions placed = place_actions(schedule, costs);
  Timeline t;
  t.complete = placed.complete;
  t.blocked_at = placed.blocked_at;
  t.makespan = makespan_of(placed);
  t.ranks.resize(schedule.actions.size());
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    t.ranks[r].actions = std::move(placed.ranks[r]);
    summarise_rank(schedule.actions[r], t.ranks[r]);
  }
  count_activations(schedule, t);
  if (t.complete) attribute_idle(schedule, costs, t);
  return t;
}

}  // namespace k3sim
