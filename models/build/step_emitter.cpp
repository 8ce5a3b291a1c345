// Layer passes -> tasks on the lanes of one rank. Source: engine-design section 4 (streams are FIFOs, the host issues).
#include "models/build/step_emitter.h"

#include <algorithm>

#include "models/build/device_classes.h"

namespace k3sim {

namespace {

StepTask comm_task(Lane lane) {
  return lane == Lane::tp_comm ? StepTask::tp_comm : lane == Lane::cp_comm ? StepTask::cp_comm : StepTask::ep_comm;
}

StepTask task_kind(const TimedItem& item) {
  if (item.is_comm) return comm_task(item.lane);
  if (item.recompute) return StepTask::recompute;
  if (item.pass == Pass::forward) return StepTask::forward;
  return item.pass == Pass::weight_grad ? StepTask::weight_grad : StepTask::backward;
}

}  // namespace

void RankEmitter::open_rank(int rank, int replica) {
  rank_ = rank;
  replica_ = replica;
  together_count_ = 0;
  const RankId id = stream_rank(rank, replica);
  for (int role = 0; role < kRankStreams; ++role)
    streams_[static_cast<std::size_t>(role)] = builder_.add_stream({id, static_cast<std::uint8_t>(role)});
}

TaskId RankEmitter::add(StreamRole role, StepTask kind, Time duration, std::uint32_t label) {
  return builder_.add(stream(role), static_cast<TaskKind>(kind), duration, label);
}

TaskId RankEmitter::add_flow(StreamRole role, StepTask kind, Time duration, std::uint32_t task_label,
                             const TrafficList& traffic, bool together) {
  if (!flows() || traffic.empty()) return add(role, kind, duration, task_label);
  const TaskId task =
      builder_.add({.stream = stream(role),
                    .kind = static_cast<TaskKind>(kind),
                    .duration = duration,
                    .tag = task_label,
                    .resource = static_cast<ResourceClass>(kExternalProgress + device_class(traffic.front()))});
  const auto [it, fresh] =
      traffic_index_.try_emplace({rank_, traffic}, static_cast<std::uint32_t>(graph_.traffics.size()));
  if (fresh) graph_.traffics.push_back(it->first);
  std::uint32_t joint = 0;
  if (together && rendezvous) {
    const auto [known, first] = joint_index_.try_emplace({rank_, together_count_++}, graph_.joints);
    joint = known->second;
    if (first) ++graph_.joints;
  } else {
    joint = graph_.joints++;
  }
  graph_.flow_tasks.push_back({task, it->second, together && rendezvous ? -1 : replica_, joint});
  return task;
}

void RankEmitter::depend(TaskId before, TaskId after) {
  if (before != kNoTask && after != kNoTask && before != after) builder_.depend(before, after);
}

std::uint32_t RankEmitter::label(const char* name, const ParameterCount& p, Bytes payload) {
  const auto next = static_cast<std::uint32_t>(graph_.labels.size());
  const auto [it, fresh] = plain_labels_.try_emplace({name, p.dense, p.experts, payload.count()}, next);
  if (fresh) graph_.labels.push_back({name, nullptr, -1, -1, p, payload});
  return it->second;
}

std::uint32_t RankEmitter::pass_label(const PassStep& step) {
  const auto [it, fresh] = pass_labels_.try_emplace(std::tuple(step.pass, step.chunk, step.part), 0u);
  if (fresh) {
    it->second = static_cast<std::uint32_t>(graph_.labels.size());
    for (const TimedItem& item : step.pass->items)
      graph_.labels.push_back({item.name, step.pass, step.chunk, step.part});
    if (step.pass->items.empty()) graph_.labels.push_back({"empty", step.pass, step.chunk, step.part});
  }
  return it->second;
}

TaskId RankEmitter::add_item(const TimedItem& item, std::uint32_t item_label) {
  const auto role = static_cast<StreamRole>(item.lane);  // lanes and the first stream roles share their order
  if (!item.is_comm) {
    const ResourceClass resource = flows() ? device_class(item.family) : kExclusive;
    return builder_.add({stream(role), static_cast<TaskKind>(task_kind(item)), item.time, item_label, resource});
  }
  const bool moves = flows() && item.traffic.kind != TrafficKind::none;
  const auto task_of = [&] {
    if (!moves) return add(role, task_kind(item), item.time, item_label);
    if (item.push.kind == TrafficKind::none)
      return add_flow(role, task_kind(item), item.traffic.alone, item_label, {item.traffic});
    const Time alone = item.push.alone + item.traffic.alone;
    return add_flow(role, task_kind(item), alone, item_label, {item.push, item.traffic});
  };
  if (!arrives(item)) return task_of();
  const TaskId arrive = add(role, StepTask::rendezvous, Time(), item_label);
  const TaskId task = task_of();
  const std::uint32_t number = collective_count_[{item.group, rank_, replica_}]++;
  const std::size_t flow = moves ? graph_.flow_tasks.size() - 1 : kNoFlow;
  collectives.push_back({item.group, rank_, replica_, number, arrive, task, flow});
  return task;
}

void RankEmitter::connect_item(PassWalk& walk, const TimedItem& item, TaskId id) {
  // An unfolded collective is two tasks; what it waits for must precede the arrival.
  const TaskId target = arrives(item) ? collectives.back().arrive : id;
  if (walk.ids.empty()) {
    for (TaskId t : walk.entry) depend(t, target);
    depend(walk.steps[walk.step].gather, target);
    depend(walk.steps[walk.step].onload, target);
    depend(walk.steps[walk.step].buffer, target);
  } else if (item.after.empty()) {
    depend(walk.ids.back(), target);
  } else {
    for (std::uint16_t a : item.after) depend(walk.ids[a], target);
  }
}

void RankEmitter::emit_whole_pass(PassWalk& walk) {
  const PassStep& step = walk.steps[walk.step];
  const PassSummary& s = step.pass->summary;
  const Time host = s.launches * machine_.software.host_launch + host_action;
  host_action = Time();
  const bool forward = !step.pass->items.empty() && step.pass->items.front().pass == Pass::forward &&
                       !step.pass->items.front().recompute;
  const bool weights_only = !step.pass->items.empty() && step.pass->items.front().pass == Pass::weight_grad;
  const StepTask kind = forward ? StepTask::forward : weights_only ? StepTask::weight_grad : StepTask::backward;
  const TaskId id = add(StreamRole::compute, kind, std::max(s.elapsed + step.contention, host), pass_label(step));
  for (TaskId t : walk.entry) depend(t, id);
  depend(step.gather, id);
  depend(step.onload, id);
  depend(step.buffer, id);
  if (walk.first == kNoTask) walk.first = id;
  walk.tail = walk.last_compute = walk.last_input = walk.last_weight = id;
  walk.ids.assign(1, id);
}

bool RankEmitter::emit_next(PassWalk& walk) {
  const PassStep& step = walk.steps[walk.step];
  if (detail_ == StepGraphOptions::Detail::step || step.pass->items.empty()) {
    emit_whole_pass(walk);
    return false;
  }
  const TimedItem& item = step.pass->items[walk.item];
  const TaskId id = add_item(item, pass_label(step) + static_cast<std::uint32_t>(walk.item));
  connect_item(walk, item, id);
  if (walk.first == kNoTask) walk.first = arrives(item) ? collectives.back().arrive : id;
  walk.ids.push_back(id);
  walk.tail = id;
  if (!item.is_comm) {
    walk.launches += item.launches;
    if (item.lane == Lane::compute) walk.last_compute = id;
  }
  if (item.pass == Pass::weight_grad) walk.last_weight = id;
  if (item.pass != Pass::weight_grad) walk.last_input = id;
  ++walk.item;
  return item.is_comm && item.lane == Lane::ep_comm;
}

void RankEmitter::emit_host(PassWalk& walk) {
  const PassStep& step = walk.steps[walk.step];
  if (detail_ == StepGraphOptions::Detail::kernel && step.contention > Time() && !step.pass->items.empty())
    add(StreamRole::compute, task_kind(step.pass->items.back()), step.contention, pass_label(step));
  if (detail_ == StepGraphOptions::Detail::step || walk.last_compute == kNoTask) return;
  const Time launch = machine_.software.host_launch;
  if (launch == Time() && host_action == Time()) return;
  const TaskId host = add(StreamRole::host, StepTask::host, walk.launches * launch + host_action);
  host_action = Time();
  depend(host, walk.last_compute);
}

}  // namespace k3sim
