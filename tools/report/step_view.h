// What traces and reports draw of a predicted step, taken from its graph once: bars of actions per pipeline rank with
// the idle time inside them by cause, gaps between them, and the item behind every task.
// A bar spans an action's tasks on the rank's compute stream; tasks outside actions (optimizer, barrier) get their own
// bar. Source: models/build/step_graph.h, models/build/breakdown.h.
#pragma once

#include <string>
#include <vector>

#include "models/build/step.h"

namespace k3sim {

struct ActionBar {
  Time start, finish;
  int span = -1;    // index into StepGraph::spans; -1: a task outside actions
  int action = -1;  // index into the rank's list of schedule actions; -1 likewise
  StepTask kind = StepTask::forward;
  std::vector<std::pair<int, Time>> idle;  // index into breakdown_parts(), time inside the bar
};

struct IdleGap {
  Time start, finish;
  int cause = 0;     // index into breakdown_parts()
  std::string what;  // what ran meanwhile
};

struct RankView {
  std::vector<ActionBar> bars;  // in order of time, not overlapping
  std::vector<IdleGap> gaps;    // between bars
};

// Requires: prediction made with keep_graph.
std::vector<RankView> step_view(const StepPrediction& prediction);

// "F", "B", "I", "W", "FB" for an overlapped pair, or the task's name.
std::string bar_kind(const StepPrediction& prediction, const ActionBar& bar);

// The item behind a task of a layer pass, or null.
const TimedItem* task_item(const StepGraph& graph, TaskId task);
const char* to_string(StreamRole role);

}  // namespace k3sim
