// Times a schedule on its own: given F, I, W and transfer durations per stage, when does every action run, how long is
// each rank idle and why, and how many activations does it hold.
//
// Every rank runs its actions in order. An action starts when the rank is free and its input is there: F waits for the
// stage before, I and B for the stage behind (plus the transfer between different ranks, which runs beside compute). If
// the schedule has send and receive actions, the input is there one transfer after both were reached. Offload, onload,
// gathers and reductions take no time here; the full simulator gives them theirs.
// Cost: one visit per action (65 k actions of PP64 x 512 in a few milliseconds).
// Source: engine-design section 11 (queue-drain execution of the order), issue 5 (idle attribution).
#pragma once

#include <vector>

#include "models/schedule/schedule.h"

namespace k3sim {

struct ScheduleCosts {
  std::vector<StageTimes> stages;  // one entry for all stages, or one per stage
  // Time of an overlapped pair F&B over the sum of its parts; DualPipe's F&B is a measured quantity of its own.
  double overlap_factor = 1.0;
  bool free_transfers_on_rank = true;  // neighbouring stages on one rank hand over without a transfer

  const StageTimes& of(int stage) const { return stages[stages.size() == 1 ? 0 : static_cast<std::size_t>(stage)]; }
};

struct Interval {
  Time start, end;
};

// Idle time of one rank over the whole step; the five parts add up to it.
//   warm_up        before the rank's first backward
//   cool_down      after the rank's last forward
//   communication  in between, waiting for a transfer whose data is ready
//   imbalance      in between, would vanish if all stages took the mean time
//   dependency     in between, the rest: the order itself makes the rank wait
struct IdleTime {
  Time warm_up, cool_down, communication, imbalance, dependency;
  Time total() const { return warm_up + cool_down + communication + imbalance + dependency; }
};

struct RankTimeline {
  std::vector<Interval> actions;  // same order as Schedule::actions of the rank; zero length for untimed actions
  Time first_start, last_end;     // of compute actions
  Time busy;
  IdleTime idle;
  int peak_activations = 0;       // (stage, micro-batch) pairs between F and the end of W (or B), offloads deducted
  int peak_until_input_grad = 0;  // the same counted from F to the end of I or B
  // Idle inside the rank's own span; the published bubble is the maximum over ranks.
  Time bubble() const { return last_end - first_start - busy; }
};

struct Timeline {
  bool complete = true;         // false: deadlock, `blocked_at` tells where
  std::vector<int> blocked_at;  // per rank: index of the action that cannot start; -1: finished
  Time makespan;
  std::vector<RankTimeline> ranks;

  Time bubble() const;           // maximum over ranks of the idle inside the span
  Time span() const;             // maximum over ranks of last end - first start
  int peak_activations() const;  // maximum over ranks
};

// Requires: costs.stages has 1 or schedule.stages entries; a schedule that lint accepts gives complete = true.
Timeline time_schedule(const Schedule& schedule, const ScheduleCosts& costs);

// The bare dataflow pass behind it, without attribution: fills start and end of every action.
struct PlacedActions {
  std::vector<std::vector<Interval>> ranks;
  std::vector<int> blocked_at;
  bool complete = true;
};
PlacedActions place_actions(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace k3sim
