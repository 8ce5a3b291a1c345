// See coarse.h. Source: engine-design sections 1, 16 and 17.
#include "tools/planner/coarse.h"

#include <algorithm>

#include "models/build/attnres_flow.h"
#include "models/build/data_parallel.h"
#include "models/build/pair_actions.h"

namespace k3sim {

namespace {

constexpr std::int64_t kBriefRounds = 4, kLongestRounds = 16;

Time pass_time(const TimedPass& pass, const Machine& machine) {
  return std::max(pass.summary.elapsed, pass.summary.launches * machine.software.host_launch);
}

Time copies(const TimedLayer& layer, const Machine& machine) {
  Time t;
  if (layer.offloaded > Bytes(0)) t += layer.offloaded / machine.gpu.host_link;
  if (layer.remote > Bytes(0)) t += layer.remote / machine.comm.scale_out.nic_payload;
  return t;
}

struct ChunkTimes {
  Time forward, backward, input, weight, gather, reduce;
};

ChunkTimes chunk_times(const Chunk& chunk, const Machine& machine, const DataParallel& data) {
  ChunkTimes c;
  c.forward = c.backward = c.input = c.weight = machine.software.host_action;
  Time back;
  for (const ChunkPart& part : chunk.parts) {
    c.forward += pass_time(part.timed->forward, machine);
    c.backward += pass_time(part.timed->backward, machine);
    c.input += pass_time(part.timed->input_grad, machine);
    c.weight += pass_time(part.timed->weight_grad, machine);
    back += copies(*part.timed, machine);
  }
  c.backward = std::max(c.backward, back);
  c.input = std::max(c.input, back);
  const Time gather = data.gather(chunk.parameters()).time, reduce = data.reduce(chunk.parameters()).time;
  if (data.sharded_parameters()) {
    c.forward = std::max(c.forward, gather);
    c.backward = std::max(c.backward, gather);
  } else {
    c.gather = gather;
  }
  c.reduce = reduce;
  return c;
}

}  // namespace

CoarseCosts coarse_costs(const StepPlan& plan, const Machine& machine) {
  const DataParallel data(plan, machine);
  const Schedule& s = plan.schedule;
  const StageBoundaries boundaries = stage_boundaries(plan);
  std::vector<ChunkTimes> chunks;
  for (const Chunk& c : plan.chunks) chunks.push_back(chunk_times(c, machine, data));
  CoarseCosts out;
  const bool late = !data.sharded_parameters() && !plan.scenario.overlap.param_gather;
  for (int stage = 0; stage < s.stages; ++stage) {
    const auto i = static_cast<std::size_t>(stage);
    const ChunkTimes& c = chunks[static_cast<std::size_t>(s.model_stage(stage))];
    const bool hop = !s.is_last(stage) && s.rank_of_stage[i] != s.rank_of_stage[i + 1];
    const Time send = hop ? plan.comm->pipeline_hop(boundaries.payload[i]).time : Time();
    out.forward.push_back(c.forward);
    out.backward.push_back(c.backward);
    out.input.push_back(c.input);
    out.weight.push_back(c.weight);
    out.send.push_back(send);
    out.send_back.push_back(s.is_first(stage) ? Time() : out.send[i - 1]);
    out.gather.push_back(late ? Time() : c.gather);
    out.reduce.push_back(c.reduce);
  }
  Time update;
  for (int rank = 0; rank < s.ranks; ++rank) {
    std::vector<const Chunk*> own;
    Time gather;
    for (int stage : s.stages_of_rank(rank)) {
      own.push_back(&plan.chunks[static_cast<std::size_t>(s.model_stage(stage))]);
      if (late) gather += chunks[static_cast<std::size_t>(s.model_stage(stage))].gather;
    }
    update = std::max(update, data.optimizer(own) + gather);
  }
  out.tail = data.norm_all_reduce() + update + machine.software.step_overhead;
  return out;
}

class CoarseTopology::Builder {
 public:
  Builder(const Schedule& schedule, bool beside, std::vector<Filled>& slots)
      : s_(schedule), beside_(beside), slots_(slots) {
    const std::size_t n =
        2 * static_cast<std::size_t>(s_.stages) * static_cast<std::size_t>(std::max(1, s_.microbatches));
    first_.assign(n, TaskId{});
    out_.assign(n, TaskId{});
  }

  TaskGraph build() && {
    for (int rank = 0; rank < s_.ranks; ++rank) add_rank(rank);
    for (int stage = 0; stage < s_.stages; ++stage)
      for (int mb = 0; mb < s_.microbatches; ++mb) {
        if (!s_.is_first(stage)) depend(out_[key(0, stage - 1, mb)], first_[key(0, stage, mb)]);
        if (!s_.is_last(stage)) depend(out_[key(1, stage + 1, mb)], first_[key(1, stage, mb)]);
      }
    const StreamId global = graph_.add_stream({RankId(), 0});
    const TaskId end = add(global, Slot::tail, 0);
    for (TaskId t : ends_) depend(t, end);
    return std::move(std::move(graph_).build().graph);
  }

 private:
  std::size_t key(int direction, int stage, int mb) const {
    return (static_cast<std::size_t>(direction) * static_cast<std::size_t>(s_.stages) +
            static_cast<std::size_t>(stage)) *
               static_cast<std::size_t>(s_.microbatches) +
           static_cast<std::size_t>(mb);
  }
  TaskId add(StreamId stream, Slot slot, int stage) {
    slots_.push_back({slot, static_cast<std::int16_t>(stage)});
    return graph_.add(stream, 0, Time());
  }
  void depend(TaskId a, TaskId b) {
    if (a != TaskId{} && b != TaskId{} && a != b) graph_.depend(a, b);
  }

  void add_rank(int rank) {
    const RankId id(rank);
    compute_ = graph_.add_stream({id, 0});
    forward_ = graph_.add_stream({id, 1});
    backward_ = graph_.add_stream({id, 2});
    const StreamId gather = graph_.add_stream({id, 3}), reduce = graph_.add_stream({id, 4});
    const std::vector<int> stages = s_.stages_of_rank(rank);
    for (int stage : stages) gathers_[stage] = add(gather, Slot::gather, stage);
    std::map<int, TaskId> last_gradient;
    TaskId last;
    for (const Action& a : s_.actions[static_cast<std::size_t>(rank)]) {
      if (!is_plain_compute(a.kind)) continue;
      last = add_action(a, rank);
      if (yields_weight_grad(a.kind)) last_gradient[a.stage] = last;
    }
    for (int stage : stages) {
      const TaskId sum = add(reduce, Slot::reduce, stage);
      depend(last_gradient[stage], sum);
      ends_.push_back(sum);
    }
    ends_.push_back(last);
  }

  TaskId add_action(const Action& a, int rank) {
    const bool forward = a.kind == ActionKind::kForward;
    const Slot slot = forward                            ? Slot::forward
                      : a.kind == ActionKind::kBackward  ? Slot::backward
                      : a.kind == ActionKind::kInputGrad ? Slot::input
                                                         : Slot::weight;
    const TaskId task = add(compute_, slot, a.stage);
    if (!forward && !yields_input_grad(a.kind)) return task;
    const std::size_t k = key(forward ? 0 : 1, a.stage, a.microbatch);
    first_[k] = out_[k] = task;
    if (forward && a.microbatch == s_.first_microbatch(a.stage)) depend(gathers_[a.stage], task);
    const bool end = forward ? s_.is_last(a.stage) : s_.is_first(a.stage);
    const int next = forward ? a.stage + 1 : a.stage - 1;
    if (end || s_.rank_of_stage[static_cast<std::size_t>(next)] == rank) return task;
    const TaskId transfer = add(!beside_  ? compute_
                                : forward ? forward_
                                          : backward_,
                                forward ? Slot::send : Slot::send_back, a.stage);
    depend(task, transfer);
    out_[k] = transfer;
    return task;
  }

  const Schedule& s_;
  bool beside_;
  std::vector<Filled>& slots_;
  GraphBuilder graph_;
  StreamId compute_, forward_, backward_;
  std::vector<TaskId> first_, out_, ends_;
  std::map<int, TaskId> gathers_;
};

CoarseTopology::CoarseTopology(const Schedule& schedule, bool beside)
    : slots_(), graph_(Builder(schedule, beside, slots_).build()) {}

Time CoarseTopology::step(const CoarseCosts& costs) const {
  static thread_local std::vector<Time> durations;
  static thread_local WalkState state;
  static thread_local TaskTimes times;
  const std::vector<Time> tail{costs.tail};
  const std::vector<Time>* tables[] = {&costs.forward,   &costs.backward, &costs.input,  &costs.weight, &costs.send,
                                       &costs.send_back, &costs.gather,   &costs.reduce, &tail};
  durations.resize(slots_.size());
  for (std::size_t t = 0; t < slots_.size(); ++t)
    durations[t] = (*tables[static_cast<std::size_t>(slots_[t].slot)])[static_cast<std::size_t>(slots_[t].stage)];
  longest_path(graph_, durations, state, times);
  return times.makespan;
}

Time SharedSchedule::step(const CoarseCosts& costs) const {
  const Time whole = topology->step(costs);
  if (rounds_beyond == 0) return whole;
  return whole + scale(whole - shorter->step(costs), rounds_beyond);
}

const SharedSchedule& ScheduleStore::get(const Scenario& s, const Layout& layout) {
  Entry* entry = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entry = &entries_[{s.schedule.name + s.schedule.file, s.parallel.pp, s.parallel.vpp, s.schedule.split_wgrad,
                       s.moe.overlap_ep, s.overlap.p2p, s.schedule.extra_warmup, layout.microbatches}];
  }
  std::call_once(entry->once, [&] {
    SharedSchedule& out = entry->shared;
    const std::int64_t m = layout.microbatches, pp = s.parallel.pp;
    const bool grows = s.schedule.name == "gpipe" || !s.schedule.file.empty() || m % pp != 0;
    const std::int64_t few = grows ? m : std::min(m, kBriefRounds * pp);
    out.brief = std::make_shared<const Schedule>(make_plan_schedule(s, few));
    out.simple = !has_pairs(*out.brief) && out.brief->slices == 1 && !s.schedule.name.starts_with("zb_");
    if (!out.simple) return;
    const std::int64_t many = grows ? m : std::min(m, kLongestRounds * pp);
    out.topology = std::make_unique<CoarseTopology>(make_plan_schedule(s, many), s.overlap.p2p);
    if (many == m) return;
    out.shorter = std::make_unique<CoarseTopology>(make_plan_schedule(s, many - pp), s.overlap.p2p);
    out.rounds_beyond = static_cast<double>(m - many) / static_cast<double>(pp);
  });
  return entry->shared;
}

}  // namespace k3sim
