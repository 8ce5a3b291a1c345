// Lets the event engine run tasks as flows. A job is a list of stages, each a set of flow classes that start together;
// the next stage starts when the last flow of the one before has arrived. A job belongs to one task, or to the tasks of
// all ranks that take part in a collective: it starts when the last of them has started and they end together.
// An external task without a job is a plain delay of its duration.
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

constexpr std::uint32_t kNoJob = 0xffffffffU;
struct FlowJob {
  std::uint32_t plan = 0;
  std::uint32_t members = 1;  // tasks that start and end together
};
struct NetworkWork {
  std::vector<FlowPlan> plans;             // shared by jobs
  std::vector<FlowJob> jobs;               // every job runs once
  std::vector<std::uint32_t> job_of_task;  // by task id, kNoJob or missing: plain delay
};
// One job for every task that has a plan, indexed by task id.
NetworkWork one_job_per_task(std::span<const FlowPlan> plans);

// Requires: `work` outlives this object.
class NetworkProgress final : public ProgressModel {
 public:
  NetworkProgress(std::span<const Bandwidth> capacities, const NetworkWork& work);

  void start(TaskId task, Time work, Time now) override;
  Time next_completion() override { return engine_.next_event(); }
  void advance(Time now, std::vector<TaskId>& finished) override;

  FlowEngine& engine() { return engine_; }
  // By job: from the start of its last member to its end. Valid when the job has ended.
  std::span<const Time> job_times() const { return job_time_; }

 private:
  struct Running {
    std::uint32_t stage = 0;
    std::uint32_t open = 0;     // flows of the stage still under way
    std::vector<TaskId> tasks;  // members that have started
  };
  struct Owner {
    std::uint32_t job = kNoJob;
    TaskId task;  // of a plain delay
  };
  std::uint32_t job_of(TaskId task) const {
    return task.value < work_->job_of_task.size() ? work_->job_of_task[task.value] : kNoJob;
  }
  void next_stage(std::uint32_t job, Time now, std::vector<TaskId>* finished);
  std::uint32_t take_id(const Owner& owner);

  FlowEngine engine_;
  const NetworkWork* work_;
  std::vector<Running> running_;      // by job
  std::vector<Time> job_time_;        // by job; the start while it runs
  std::vector<Owner> owner_of_flow_;  // by flow id
  std::vector<std::uint32_t> free_ids_;
  std::vector<FlowId> arrived_;
};

}  // namespace k3sim
