// Lets the event engine run tasks as flows: a task of class kExternalProgress is a list of stages, each a set of flow
// classes that start together; the next stage starts when the last flow of the one before has arrived.
// The plan of a task is given beforehand by its id, or its duration is taken as a plain delay when it has none.
// Source: engine-design notes section 6, level L1 (phases as flows).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/progress_model.h"
#include "sim/net/flow_engine.h"

namespace k3sim {

struct FlowClass {
  std::vector<PathElement> path;
  Bytes bytes;  // per member flow
  Time latency{};
  Bandwidth cap{std::numeric_limits<double>::infinity()};
};
struct FlowStage {
  std::vector<FlowClass> flows;
};
struct FlowPlan {
  std::vector<FlowStage> stages;  // empty: done at once
};

// Requires: capacities and plans outlive this object; plans is indexed by task id (missing entries: plain delay).
class NetworkProgress final : public ProgressModel {
 public:
  NetworkProgress(std::span<const Bandwidth> capacities, std::span<const FlowPlan> plans);

  void start(TaskId task, Time work, Time now) override;
  Time next_completion() override { return engine_.next_event(); }
  void advance(Time now, std::vector<TaskId>& finished) override;

  FlowEngine& engine() { return engine_; }

 private:
  struct Running {
    std::uint32_t stage = 0;
    std::uint32_t open = 0;  // flows of the stage still under way
  };
  void next_stage(TaskId task, Time now, std::vector<TaskId>* finished);
  std::uint32_t take_id(TaskId task);

  FlowEngine engine_;
  std::span<const FlowPlan> plans_;
  std::vector<Running> running_;      // by task id
  std::vector<TaskId> task_of_flow_;  // by flow id
  std::vector<std::uint32_t> free_ids_;
  std::vector<FlowId> arrived_;
};

}  // namespace k3sim
