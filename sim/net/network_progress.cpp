// Tasks as stages of flows; see the header.
// Source: engine-design notes section 6.
#include "sim/net/network_progress.h"

#include "sim/base/check.h"

namespace k3sim {

NetworkProgress::NetworkProgress(std::span<const Bandwidth> capacities, std::span<const FlowPlan> plans)
    : engine_(capacities), plans_(plans) {}

std::uint32_t NetworkProgress::take_id(TaskId task) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<std::uint32_t>(task_of_flow_.size()));
    task_of_flow_.emplace_back();
  }
  const std::uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  task_of_flow_[id] = task;
  return id;
}

void NetworkProgress::start(TaskId task, Time work, Time now) {
  if (task.value >= running_.size()) running_.resize(task.value + 1);
  running_[task.value] = {};
  if (task.value >= plans_.size() || plans_[task.value].stages.empty()) {  // a plain delay, free of the network
    running_[task.value].open = 1;
    running_[task.value].stage = 1;
    engine_.start({.id = FlowId(static_cast<std::size_t>(take_id(task))),
                   .path = {},
                   .bytes = Bytes(0),
                   .latency = work,
                   .cap = Bandwidth(1)},
                  now);
    return;
  }
  next_stage(task, now, nullptr);
}

// Starts the next stage that has flows, or reports the task as finished.
void NetworkProgress::next_stage(TaskId task, Time now, std::vector<TaskId>* finished) {
  Running& r = running_[task.value];
  const auto& stages = plans_[task.value].stages;
  while (r.stage < stages.size() && stages[r.stage].flows.empty()) ++r.stage;
  if (r.stage == stages.size()) {
    CS_CHECK(finished != nullptr, "task {} has stages but no flows", task.value);
    finished->push_back(task);
    return;
  }
  const FlowStage& stage = stages[r.stage++];
  r.open = static_cast<std::uint32_t>(stage.flows.size());
  for (const FlowClass& f : stage.flows) {
    engine_.start({.id = FlowId(static_cast<std::size_t>(take_id(task))),
                   .path = f.path,
                   .bytes = f.bytes,
                   .latency = f.latency,
                   .cap = f.cap},
                  now);
  }
}

void NetworkProgress::advance(Time now, std::vector<TaskId>& finished) {
  arrived_.clear();
  engine_.advance(now, arrived_);
  for (FlowId f : arrived_) {
    const TaskId task = task_of_flow_[f.value];
    free_ids_.push_back(f.value);
    Running& r = running_[task.value];
    if (--r.open > 0) continue;
    if (task.value >= plans_.size() || plans_[task.value].stages.empty()) {
      finished.push_back(task);
    } else {
      next_stage(task, now, &finished);
    }
  }
}

}  // namespace k3sim
