// See parameter_traffic.h. Source: k3-facts 2.3; Megatron-LM distributed optimizer; ZeRO-3 prefetch.
#include "models/build/parameter_traffic.h"

#include "models/build/host_copies.h"

namespace k3sim {

namespace {

constexpr std::size_t kMaxParts = 1024;

std::size_t gather_key(int stage, int part) {
  return static_cast<std::size_t>(stage) * kMaxParts + static_cast<std::size_t>(part);
}

bool is_empty(const ParameterCount& p) {
  return p.dense + p.experts == 0;
}

}  // namespace

ParameterTraffic::ParameterTraffic(const StepPlan& plan, const Machine& machine, RankEmitter& emitter)
    : plan_(plan),
      machine_(machine),
      emitter_(emitter),
      data_parallel_(plan, machine),
      by_chunk_(reduces_by_chunk(plan)),
      cpu_shards_(plan.scenario.optimizer.gradient_shards == "cpu"),
      shard_label_(emitter.label("gradient shard")) {}

void ParameterTraffic::open_rank(int rank) {
  first_gather_.clear();
  last_gradient_action_.clear();
  unreduced_.clear();
  bucket_ = {};
  bucket_ready_ = run_tail_ = kNoTask;
  reductions_.clear();
  flushes_.clear();
  run_stage_ = -1;
  const std::vector<Action>& actions = plan_.schedule.actions[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < actions.size(); ++i)
    for_each_part(actions[i], [&](const Action& part) {
      if (yields_weight_grad(part.kind)) last_gradient_action_[part.stage] = i;
    });
  emit_initial_gathers(rank);
}

bool ParameterTraffic::is_last_gradient(const Action& a, std::size_t index) const {
  const auto it = last_gradient_action_.find(a.stage);
  return it != last_gradient_action_.end() && it->second == index;
}

// Communication that runs beside compute takes SMs and bandwidth from it for as long as it lasts.
// With flows the kernels beside it slow down by the measured matrix instead.
Time ParameterTraffic::contention(Time communication) const {
  if (emitter_.flows()) return Time();
  return scale(communication, machine_.software.compute_slowdown - 1.0);
}

void ParameterTraffic::attach(PassWalk& walk, const Action& a, std::size_t index) {
  attach_gathers(walk, a);
  if (!yields_weight_grad(a.kind)) return;
  if (by_chunk_) change_run(walk, a, index);
  if (!plan_.scenario.overlap.grad_reduce) return;
  for (PassStep& step : walk.steps)
    if (step.last_gradient || data_parallel_.reduce_every_microbatch())
      step.contention += contention(
          data_parallel_.reduce(chunk_of(a.stage).steps()[static_cast<std::size_t>(step.part)].parameters).time);
}

// ZeRO-3 gathers every layer anew; ZeRO-1 with overlap gathered once at the start of the step.
void ParameterTraffic::attach_gathers(PassWalk& walk, const Action& a) {
  const bool forward = a.kind == ActionKind::kForward;
  const Chunk& chunk = chunk_of(a.stage);
  if (data_parallel_.sharded_parameters()) {
    if (a.kind == ActionKind::kWeightGrad) return;
    if (!forward && !plan_.scenario.optimizer.reshard_after_forward) return;
    for (PassStep& s : walk.steps) {
      const ParameterCount& parameters = chunk.steps()[static_cast<std::size_t>(s.part)].parameters;
      const DataTraffic t = data_parallel_.gather(parameters);
      if (t.time == Time()) continue;
      s.gather = add_gather(t, parameters);
      s.contention += contention(t.time);
    }
    return;
  }
  if (!forward || a.microbatch != plan_.schedule.first_microbatch(a.stage)) return;
  for (PassStep& s : walk.steps) {
    const std::size_t key = gather_key(a.stage, s.part);
    if (key < first_gather_.size()) s.gather = first_gather_[key];
  }
}

// The schedule moved on to another chunk: flush the buffer just filled; the one taken now must have been flushed.
void ParameterTraffic::change_run(PassWalk& walk, const Action& a, std::size_t index) {
  if (a.stage == run_stage_) return;
  if (run_stage_ >= 0 && last_gradient_action_.at(run_stage_) >= index) {
    const ParameterCount parameters = chunk_of(run_stage_).owned();
    if (!is_empty(parameters)) flushes_.push_back(add_reduction(parameters, run_tail_));
    if (plan_.scenario.overlap.grad_reduce && !walk.steps.empty())
      walk.steps.front().contention += contention(data_parallel_.reduce(parameters).time);
  }
  if (flushes_.size() >= 2 && !walk.steps.empty()) walk.steps.front().buffer = flushes_[flushes_.size() - 2];
  run_stage_ = a.stage;
}

TaskId ParameterTraffic::add_gather(const DataTraffic& t, const ParameterCount& parameters) {
  return emitter_.add_flow(StreamRole::param_gather, StepTask::param_gather, t.time,
                           emitter_.label("parameter gather", parameters), t.flows, true);
}

void ParameterTraffic::emit_initial_gathers(int rank) {
  if (data_parallel_.sharded_parameters() || !plan_.scenario.overlap.param_gather) return;
  first_gather_.assign(static_cast<std::size_t>(plan_.schedule.stages) * kMaxParts, kNoTask);
  for (int stage : plan_.schedule.stages_of_rank(rank)) {
    const Chunk& chunk = chunk_of(stage);
    for (std::size_t part = 0; part < chunk.steps().size(); ++part) {
      const ParameterCount& parameters = chunk.steps()[part].parameters;
      const DataTraffic t = data_parallel_.gather(parameters);
      if (t.time > Time()) first_gather_[gather_key(stage, static_cast<int>(part))] = add_gather(t, parameters);
    }
  }
}

Bytes ParameterTraffic::shard(const ParameterCount& p) const {
  const std::int64_t dense = data_parallel_.shard_ranks(GroupKind::dp);
  const std::int64_t experts = data_parallel_.shard_ranks(GroupKind::expert_dp);
  return ((p.dense + dense - 1) / dense + (p.experts + experts - 1) / experts) *
         plan_.scenario.optimizer.gradient_bytes;
}

// The last task of the reduction: with CPU shards the sum on its way back.
TaskId ParameterTraffic::add_reduction(const ParameterCount& parameters, TaskId ready) {
  const DataTraffic t = data_parallel_.reduce(parameters);
  if (t.time == Time() && !cpu_shards_) return kNoTask;
  TaskId task = emitter_.add_flow(StreamRole::grad_reduce, StepTask::grad_reduce, t.time,
                                  emitter_.label("gradient reduce", parameters), t.flows, true);
  emitter_.depend(ready, task);
  if (cpu_shards_) {
    const Bytes bytes = shard(parameters);
    const TaskId up = add_host_copy(emitter_, machine_, bytes, true, shard_label_);
    const TaskId back = add_host_copy(emitter_, machine_, bytes, false, shard_label_);
    emitter_.depend(ready, up);
    emitter_.depend(up, back);
    emitter_.depend(task, back);
    task = back;
  }
  reductions_.push_back(task);
  return task;
}

void ParameterTraffic::flush_bucket() {
  if (bucket_ready_ == kNoTask) return;
  if (plan_.scenario.overlap.grad_reduce)
    add_reduction(bucket_, bucket_ready_);
  else
    unreduced_.emplace_back(bucket_, bucket_ready_);
  bucket_ = {};
  bucket_ready_ = kNoTask;
}

void ParameterTraffic::pass_ended(const PassStep& step, const PassWalk& walk) {
  const bool weights = walk.last_weight != kNoTask || step.pass->items.empty();
  const TaskId ready = walk.last_weight != kNoTask ? walk.last_weight : walk.tail;
  if (weights && ready != kNoTask) run_tail_ = ready;
  if (data_parallel_.reduce_every_microbatch() ? weights : step.last_gradient) gradients_ready(step, ready);
}

// Gradients of a part are complete: collect them into buckets; ZeRO-2 and 3 reduce each part at once.
void ParameterTraffic::gradients_ready(const PassStep& step, TaskId ready) {
  const ParameterCount& p =
      plan_.chunks[static_cast<std::size_t>(step.chunk)].steps()[static_cast<std::size_t>(step.part)].parameters;
  if (is_empty(p)) return;
  if (data_parallel_.reduce_every_microbatch()) {
    add_reduction(p, ready);
    return;
  }
  bucket_.dense += p.dense;
  bucket_.experts += p.experts;
  bucket_ready_ = ready;
  const Bytes size = (bucket_.dense + bucket_.experts) * plan_.scenario.optimizer.gradient_bytes;
  if (size >= machine_.software.bucket) flush_bucket();
}

void ParameterTraffic::action_part_ended(const Action& a, std::size_t index) {
  if (is_last_gradient(a, index)) flush_bucket();
}

std::vector<TaskId> ParameterTraffic::close_rank(TaskId last_compute) {
  for (const auto& [parameters, ready] : unreduced_) add_reduction(parameters, last_compute);
  std::vector<TaskId> done = reductions_;
  if (last_compute != kNoTask) done.push_back(last_compute);
  return done;
}

DataTraffic ParameterTraffic::late_gather(const std::vector<const Chunk*>& chunks) const {
  DataTraffic gather;
  if (data_parallel_.sharded_parameters() || plan_.scenario.overlap.param_gather) return gather;
  for (const Chunk* c : chunks) {
    const DataTraffic t = data_parallel_.gather(c->owned());
    gather.time += t.time;
    gather.flows.insert(gather.flows.end(), t.flows.begin(), t.flows.end());
  }
  return gather;
}

}  // namespace k3sim
