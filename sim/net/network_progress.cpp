// Tasks as stages of flows; see the header.
// Source: engine-design notes section 6.
#include "sim/net/network_progress.h"

#include "sim/base/check.h"

namespace k3sim {

NetworkWork one_job_per_task(std::span<const FlowPlan> plans) {
  NetworkWork work;
  work.plans.assign(plans.begin(), plans.end());
  for (std::uint32_t t = 0; t < plans.size(); ++t) {
    const bool moves = !plans[t].stages.empty();
    work.job_of_task.push_back(moves ? static_cast<std::uint32_t>(work.jobs.size()) : kNoJob);
    if (moves) work.jobs.push_back({t, 1});
  }
  return work;
}

NetworkProgress::NetworkProgress(std::span<const Bandwidth> capacities, const NetworkWork& work)
    : engine_(capacities), work_(&work), running_(work.jobs.size()), job_time_(work.jobs.size()) {}

std::uint32_t NetworkProgress::take_id(const Owner& owner) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<std::uint32_t>(owner_of_flow_.size()));
    owner_of_flow_.emplace_back();
  }
  const std::uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  owner_of_flow_[id] = owner;
  return id;
}

void NetworkProgress::start(TaskId task, Time work, Time now) {
  const std::uint32_t job = job_of(task);
  if (job == kNoJob) {  // a plain delay, free of the network
    const std::uint32_t id = take_id({kNoJob, task});
    engine_.start({.id = FlowId(std::size_t{id}), .path = {}, .bytes = Bytes(0), .latency = work, .cap = Bandwidth(1)},
                  now);
    return;
  }
  Running& r = running_[job];
  r.tasks.push_back(task);
  CS_CHECK(r.tasks.size() <= work_->jobs[job].members, "job {} has {} members", job, work_->jobs[job].members);
  if (r.tasks.size() < work_->jobs[job].members) return;
  job_time_[job] = now;
  next_stage(job, now, nullptr);
}

// Starts the next stage that has flows, or reports the members as finished.
void NetworkProgress::next_stage(std::uint32_t job, Time now, std::vector<TaskId>* finished) {
  Running& r = running_[job];
  const auto& stages = work_->plans[work_->jobs[job].plan].stages;
  while (r.stage < stages.size() && stages[r.stage].flows.empty()) ++r.stage;
  if (r.stage == stages.size()) {
    CS_CHECK(finished != nullptr, "job {} has stages but no flows", job);
    finished->insert(finished->end(), r.tasks.begin(), r.tasks.end());
    r.tasks = {};
    job_time_[job] = now - job_time_[job];
    return;
  }
  const FlowStage& stage = stages[r.stage++];
  r.open = static_cast<std::uint32_t>(stage.flows.size());
  for (const FlowClass& f : stage.flows) {
    engine_.start({.id = FlowId(std::size_t{take_id({job, {}})}),
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
    const Owner owner = owner_of_flow_[f.value];
    free_ids_.push_back(f.value);
    if (owner.job == kNoJob) {
      finished.push_back(owner.task);
    } else if (--running_[owner.job].open == 0) {
      next_stage(owner.job, now, &finished);
    }
  }
}

}  // namespace k3sim
