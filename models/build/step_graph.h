// Tasks of one training step on one representative rank per pipeline stage (folded), or on more replicas when unfolded.
//
// Streams of a rank: compute, side (shared experts), one per communicator, pipeline sends in both directions, parameter
// gather, gradient reduction, host. Detail::kernel makes one task per kernel and collective; Detail::step one task per
// layer pass, as long as the pass takes alone. Cross-rank edges: a stage's first item waits for the transfer of its
// neighbour. Unfolded collectives start when the last member has arrived (rendezvous task), so that a folded and an
// unfolded run of a symmetric step agree to the picosecond.
// Source: engine-design sections 1, 4, 7.
#pragma once

#include <cstdint>
#include <vector>

#include "models/build/routed_layer.h"
#include "models/build/step_plan.h"
#include "sim/graph/graph_builder.h"

namespace k3sim {

enum class StepTask : TaskKind {
  forward,
  backward,
  weight_grad,
  recompute,
  tp_comm,
  cp_comm,
  ep_comm,
  transfer,
  param_gather,
  grad_reduce,
  optimizer,
  host,
  barrier,
  rendezvous,
  offload,
  onload,
  vision
};
constexpr int kStepTasks = 17;
const char* to_string(StepTask t);

enum class StreamRole : std::uint8_t {
  compute,
  side,
  tp_comm,
  cp_comm,
  ep_comm,
  send_forward,
  send_backward,
  param_gather,
  grad_reduce,
  host,
  offload,
  onload,
  global
};
constexpr int kRankStreams = 12;  // all but global

struct StepGraphOptions {
  enum class Detail : std::uint8_t { step, kernel } detail = Detail::step;
  std::vector<GroupKind> unfold;  // dims of tp, cp, dp (expert groups follow) or ep that get their own ranks
  bool flows = false;             // communication and copies are flows (needs kernel detail), not fixed durations
  // Unfolds ep by itself when routing makes its ranks differ and the graph stays below this many tasks; 0: never.
  std::int64_t straggler_tasks = 0;
};

struct ActionSpan {
  std::int32_t rank = 0, replica = 0;
  Action action;
  std::uint32_t first = 0, end = 0;  // task ids
};

struct TaskLabel {
  const char* name = "";
  const TimedPass* pass = nullptr;  // null for tasks outside layers
  std::int32_t chunk = -1, part = -1;
  ParameterCount parameters = {};  // gathered or reduced
  Bytes payload = Bytes();         // of a pipeline transfer
};

// What the simulated ranks of one pipeline rank move in one task.
struct StageTraffic {
  std::int32_t rank = 0;
  TrafficList pieces;
  friend auto operator<=>(const StageTraffic&, const StageTraffic&) = default;
};

struct FlowTask {
  TaskId task;
  std::uint32_t traffic = 0;  // in StepGraph::traffics
  std::int32_t replica = 0;   // index of the represented replica; -1: all represented replicas at once
  std::uint32_t joint = 0;    // tasks of one collective on several ranks have the same number
};

struct StepGraph {
  StepGraphOptions::Detail detail = StepGraphOptions::Detail::step;
  bool flows = false;
  // Ranks start the next step as soon as their own optimizer is done (zero-bubble post-validation): warm-up of one step
  // lies beside the cool-down of the one before, and a step lasts as long as the busiest rank's own span.
  bool staggered = false;
  BuiltGraph built;
  std::vector<ActionSpan> spans;
  std::vector<TaskLabel> labels;                      // by TaskGraph::tag
  std::vector<std::vector<StreamId>> compute_stream;  // [pipeline rank][represented replica]
  std::vector<int> replicas;                          // represented replica numbers of one stage
  std::vector<StageTraffic> traffics;                 // distinct; empty without flows
  std::vector<FlowTask> flow_tasks;
  std::uint32_t joints = 0;
  std::shared_ptr<RoutedPasses> routed;  // passes that labels point to
};

StepGraph build_step_graph(const StepPlan& plan, const Machine& machine, const StepGraphOptions& options);

}  // namespace k3sim
