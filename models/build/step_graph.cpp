// One step as tasks: schedule actions, transfers, parameter and gradient traffic, optimizer. Source: engine-design
// sections 1, 4, 7; Megatron-LM distributed optimizer (buckets), ZeRO-3 prefetch of one layer.
#include "models/build/step_graph.h"

#include <algorithm>
#include <map>
#include <optional>

#include "models/build/activation_copies.h"
#include "models/build/attnres_flow.h"
#include "models/build/host_copies.h"
#include "models/build/parameter_traffic.h"
#include "models/build/replicas.h"
#include "models/build/router_balancing.h"
#include "models/build/step_emitter.h"
#include "models/build/vision_tasks.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

constexpr std::array<const char*, kStepTasks> kStepTaskNames{
    "forward", "backward",   "weight_grad",  "recompute",   "tp_comm",   "cp_comm",
    "ep_comm", "transfer",   "param_gather", "grad_reduce", "optimizer", "host",
    "barrier", "rendezvous", "offload",      "onload",      "vision"};

// First and last tasks of every (direction, stage, micro-batch, replica).
struct Endpoints {
  std::vector<TaskId> first, out;
  std::size_t stages = 0, microbatches = 0, replicas = 0;
  std::size_t at(int direction, int stage, int mb, int replica) const {
    return ((static_cast<std::size_t>(direction) * stages + static_cast<std::size_t>(stage)) * microbatches +
            static_cast<std::size_t>(mb)) *
               replicas +
           static_cast<std::size_t>(replica);
  }
};

class StepBuilder {
 public:
  StepBuilder(const StepPlan& plan, const Machine& machine, const StepGraphOptions& options)
      : plan_(plan),
        machine_(machine),
        options_(options),
        boundaries_(stage_boundaries(plan)),
        emitter_(builder_, machine, graph_, options.detail),
        parameters_(plan, machine, emitter_),
        copies_(plan, machine, emitter_),
        vision_(plan, machine, emitter_) {
    graph_.detail = options.detail;
    graph_.flows = options.flows;
    CS_CHECK(!options.flows || options.detail == StepGraphOptions::Detail::kernel, "flows need one task per kernel");
    graph_.replicas = represented_replicas(plan, options.unfold);
    graph_.routed = std::make_shared<RoutedPasses>(*plan.layers, machine, *plan.comm);
    for (const int replica : graph_.replicas) expert_rank_.push_back(expert_rank(replica));
    const Schedule& s = plan_.schedule;
    ends_.stages = static_cast<std::size_t>(s.stages);
    ends_.microbatches = static_cast<std::size_t>(s.microbatches);
    ends_.replicas = graph_.replicas.size();
    const std::size_t n = 2 * ends_.stages * ends_.microbatches * ends_.replicas;
    ends_.first.assign(n, kNoTask);
    ends_.out.assign(n, kNoTask);
    emitter_.rendezvous = graph_.replicas.size() > 1;
    optimizer_label_ = emitter_.label("optimizer");
    barrier_label_ = emitter_.label("gradient norm");
    overhead_label_ = emitter_.label("framework");
    fetch_label_ = emitter_.label("matrix fetch");
    state_label_ = emitter_.label("optimizer states");
    statistics_label_ = emitter_.label("router statistics");
  }

  StepGraph build() && {
    const Schedule& s = plan_.schedule;
    for (int rank = 0; rank < s.ranks; ++rank) {
      graph_.compute_stream.emplace_back();
      for (std::size_t q = 0; q < graph_.replicas.size(); ++q) emit_rank(rank, static_cast<int>(q));
    }
    connect_stages();
    vision_.connect();
    connect_collectives();
    emit_end();
    graph_.built = std::move(builder_).build();
    return std::move(graph_);
  }

 private:
  const Chunk& chunk_of(int stage) const {
    return plan_.chunks[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
  }

  // Position in the expert-parallel group when all its members are simulated.
  int expert_rank(int replica) const {
    if (plan_.scenario.parallel.ep == 1) return kBusiestRank;
    const std::vector<int> group = plan_.placement->members(GroupKind::ep, replica);
    const bool all = std::all_of(group.begin(), group.end(), [&](int r) {
      return std::find(graph_.replicas.begin(), graph_.replicas.end(), r) != graph_.replicas.end();
    });
    return all ? static_cast<int>(std::find(group.begin(), group.end(), replica) - group.begin()) : kBusiestRank;
  }

  PassWalk make_walk(const Action& a, std::size_t index, int q) {
    PassWalk walk;
    const Chunk& chunk = chunk_of(a.stage);
    const bool last_gradient = parameters_.is_last_gradient(a, index);
    const int chunk_index = plan_.schedule.model_stage(a.stage);
    const bool forward = a.kind == ActionKind::kForward;
    const std::vector<ChunkPart>& parts = chunk.steps();
    const int n = static_cast<int>(parts.size());
    for (int i = 0; i < n; ++i) {
      const int part = forward ? i : n - 1 - i;
      const TimedPasses& t = graph_.routed->of(parts[static_cast<std::size_t>(part)], a.microbatch,
                                               expert_rank_[static_cast<std::size_t>(q)]);
      const TimedPass& pass = forward                            ? t.forward
                              : a.kind == ActionKind::kBackward  ? t.backward
                              : a.kind == ActionKind::kInputGrad ? t.input_grad
                                                                 : t.weight_grad;
      PassStep step;
      step.pass = &pass;
      step.chunk = chunk_index;
      step.part = part;
      step.last_gradient = last_gradient && yields_weight_grad(a.kind);
      walk.steps.push_back(step);
    }
    parameters_.attach(walk, a, index);
    copies_.attach(walk, a);
    return walk;
  }

  void emit_plain(const Action& a, int q, PassWalk& walk) {
    const Schedule& s = plan_.schedule;
    const bool forward = a.kind == ActionKind::kForward;
    if (!forward && !yields_input_grad(a.kind)) return;
    const int direction = forward ? 0 : 1;
    const std::size_t key = ends_.at(direction, a.stage, a.microbatch, q);
    ends_.first[key] = walk.first;
    const TaskId out = forward ? walk.tail : walk.last_input;
    const int next = forward ? a.stage + 1 : a.stage - 1;
    const bool end = forward ? s.is_last(a.stage) : s.is_first(a.stage);
    ends_.out[key] = out;
    last_compute_ = walk.tail;
    if (a.stage == 0) vision_.first_stage_ran(a, q, forward ? walk.first : out);
    if (end) return;
    const int rank = s.rank_of_stage[static_cast<std::size_t>(a.stage)];
    if (s.rank_of_stage[static_cast<std::size_t>(next)] == rank) return;
    // The boundary belongs to the earlier of the two stages; gradients flow back with the same size.
    const Bytes bytes = boundaries_.payload[static_cast<std::size_t>(forward ? a.stage : next)];
    CommCost hop = plan_.comm->pipeline_hop(bytes);
    hop.traffic.peer = s.rank_of_stage[static_cast<std::size_t>(next)];
    const StreamRole role = !plan_.scenario.overlap.p2p ? StreamRole::compute
                            : forward                   ? StreamRole::send_forward
                                                        : StreamRole::send_backward;
    const TaskId transfer =
        emitter_.add_flow(role, StepTask::transfer, hop.time, emitter_.label("pipeline transfer", {}, bytes),
                          hop.traffic.kind == TrafficKind::none ? TrafficList{} : TrafficList{hop.traffic});
    emitter_.depend(out, transfer);
    ends_.out[key] = transfer;
  }

  void emit_action(const Action& a, std::size_t index, int rank, int q) {
    const auto begin = static_cast<std::uint32_t>(builder_.task_count());
    if (vision_.emit(a, q)) {
      graph_.spans.push_back({rank, q, a, begin, static_cast<std::uint32_t>(builder_.task_count())});
      return;
    }
    if (a.kind == ActionKind::kOffload || a.kind == ActionKind::kOnload) return copies_.move(a);
    std::vector<Action> parts;
    for_each_part(a, [&](const Action& part) {
      if (is_plain_compute(part.kind)) parts.push_back(part);
    });
    if (parts.empty()) return;
    emitter_.host_action = machine_.software.host_action;
    std::vector<PassWalk> walks;
    for (const Action& part : parts) walks.push_back(make_walk(part, index, q));
    const auto on_end = [&](const PassStep& step, const PassWalk& walk) {
      copies_.pass_ended(step, walk);
      parameters_.pass_ended(step, walk);
    };
    while (std::any_of(walks.begin(), walks.end(), [](const PassWalk& w) { return !w.done(); }))
      for (PassWalk& w : walks) emitter_.run(w, walks.size() > 1, on_end);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      emit_plain(parts[i], q, walks[i]);
      copies_.action_ended(parts[i], walks[i].tail);
      parameters_.action_part_ended(parts[i], index);
    }
    graph_.spans.push_back({rank, q, a, begin, static_cast<std::uint32_t>(builder_.task_count())});
  }

  void emit_rank(int rank, int q) {
    emitter_.open_rank(rank, q);
    graph_.compute_stream.back().push_back(emitter_.stream(StreamRole::compute));
    parameters_.open_rank(rank);
    copies_.open_rank(rank);
    vision_.open_rank(rank);
    last_compute_ = kNoTask;
    const std::vector<Action>& actions = plan_.schedule.actions[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < actions.size(); ++i) emit_action(actions[i], i, rank, q);
    rank_done_.push_back(parameters_.close_rank(last_compute_));
    emit_router_statistics(rank);
    vision_.close_rank(rank_done_.back());
    rank_streams_.push_back(emitter_.mark_rank());
  }

  // One all-reduce per MoE layer and step behind the gradients (k3-facts 2.9).
  void emit_router_statistics(int rank) {
    int layers = 0;
    for (int stage : plan_.schedule.stages_of_rank(rank))
      for (const ChunkPart& part : chunk_of(stage).parts) layers += part.timed->moe ? 1 : 0;
    const Time each = router_statistics_time(plan_);
    if (layers == 0 || each == Time()) return;
    const TaskId t = emitter_.add(StreamRole::grad_reduce, StepTask::grad_reduce, layers * each, statistics_label_);
    emitter_.depend(last_compute_, t);
    rank_done_.back().push_back(t);
  }

  void connect_stages() {
    const Schedule& s = plan_.schedule;
    for (int stage = 0; stage < s.stages; ++stage)
      for (int mb = 0; mb < s.microbatches; ++mb)
        for (int q = 0; q < static_cast<int>(ends_.replicas); ++q) {
          if (!s.is_first(stage)) connect(0, stage - 1, stage, mb, q);
          if (!s.is_last(stage)) connect(1, stage + 1, stage, mb, q);
        }
  }

  void connect(int direction, int from, int to, int mb, int q) {
    emitter_.depend(ends_.out[ends_.at(direction, from, mb, q)], ends_.first[ends_.at(direction, to, mb, q)]);
  }

  // Every member's collective starts when all members have arrived. Large groups meet in a task of their own: n + n
  // edges instead of n squared.
  void connect_collectives() {
    std::map<std::tuple<GroupKind, int, int, std::uint32_t>, std::vector<const RankEmitter::Collective*>> groups;
    for (const RankEmitter::Collective& c : emitter_.collectives) {
      const int replica = graph_.replicas[static_cast<std::size_t>(c.replica)];
      const int leader = plan_.placement->members(c.group, replica).front();
      groups[{c.group, c.rank, leader, c.number}].push_back(&c);
    }
    constexpr std::size_t kPairs = 4;
    std::map<std::tuple<GroupKind, int, int>, StreamId> meeting_streams;
    for (const auto& [key, members] : groups) {
      for (const auto* a : members)
        if (a->flow != RankEmitter::kNoFlow)
          graph_.flow_tasks[a->flow].joint = graph_.flow_tasks[members.front()->flow].joint;
      if (members.size() <= kPairs) {
        for (const auto* a : members)
          for (const auto* b : members)
            if (a != b) emitter_.depend(a->arrive, b->task);
        continue;
      }
      const auto [kind, rank, leader, number] = key;
      const auto [stream, fresh] = meeting_streams.try_emplace({kind, rank, leader});
      if (fresh) stream->second = builder_.add_stream({RankId(), static_cast<std::uint8_t>(StreamRole::global)});
      const TaskId met =
          builder_.add(stream->second, static_cast<TaskKind>(StepTask::rendezvous), Time(), barrier_label_);
      for (const auto* m : members) {
        emitter_.depend(m->arrive, met);
        emitter_.depend(met, m->task);
      }
    }
  }

  // Gradient norm over all ranks, optimizer, parameters (when not overlapped with the next forward), framework.
  void emit_end() {
    const StreamId global = builder_.add_stream({RankId(), static_cast<std::uint8_t>(StreamRole::global)});
    const TaskId barrier = builder_.add(global, static_cast<TaskKind>(StepTask::barrier),
                                        parameters_.data_parallel().norm_all_reduce(), barrier_label_);
    graph_.staggered = plan_.schedule.name.rfind("zb_", 0) == 0;
    for (const std::vector<TaskId>& done : rank_done_)
      for (TaskId t : done)
        if (!graph_.staggered) builder_.depend(t, barrier);
    const TaskId end =
        builder_.add(global, static_cast<TaskKind>(StepTask::host), machine_.software.step_overhead, overhead_label_);
    std::size_t i = 0;
    for (int rank = 0; rank < plan_.schedule.ranks; ++rank) {
      const RankUpdate u = update_of(rank);
      const std::uint32_t gather_label = emitter_.label("parameter gather", parameters_of(rank));
      for (std::size_t q = 0; q < graph_.replicas.size(); ++q, ++i) {
        emitter_.reopen_rank(rank, static_cast<int>(q), rank_streams_[i]);
        const std::vector<TaskId> updated = emit_update(u, graph_.staggered ? rank_done_[i] : std::vector{barrier});
        if (u.gather.time == Time()) {
          for (TaskId t : updated) builder_.depend(t, end);
          continue;
        }
        const TaskId gather = emitter_.add_flow(StreamRole::param_gather, StepTask::param_gather, u.gather.time,
                                                gather_label, u.gather.flows, true);
        for (TaskId t : updated) builder_.depend(t, gather);
        builder_.depend(gather, end);
      }
    }
  }

  struct RankUpdate {
    OptimizerWork work;
    Time all_at_once;
    DataTraffic gather;
  };

  // Flows: kernels, matrices of other owners and host memory go side by side on their own streams.
  std::vector<TaskId> emit_update(const RankUpdate& u, const std::vector<TaskId>& before) {
    std::vector<TaskId> tasks;
    const bool flows = emitter_.flows();
    tasks.push_back(emitter_.add(StreamRole::compute, StepTask::optimizer, flows ? u.work.kernels : u.all_at_once,
                                 optimizer_label_));
    if (flows && !u.work.fetch.flows.empty())
      tasks.push_back(emitter_.add_flow(StreamRole::param_gather, StepTask::param_gather, u.work.fetch.time,
                                        fetch_label_, u.work.fetch.flows, true));
    if (flows && u.work.host > Bytes(0))
      for (bool to_gpu : {true, false})
        tasks.push_back(add_host_copy(emitter_, machine_, u.work.host, to_gpu, state_label_));
    for (TaskId t : tasks)
      for (TaskId b : before) emitter_.depend(b, t);
    return tasks;
  }

  RankUpdate update_of(int rank) const {
    std::vector<const Chunk*> chunks;
    for (int stage : plan_.schedule.stages_of_rank(rank)) chunks.push_back(&chunk_of(stage));
    const DataParallel& d = parameters_.data_parallel();
    return {d.optimizer_work(chunks), d.optimizer(chunks), parameters_.late_gather(chunks)};
  }

  ParameterCount parameters_of(int rank) const {
    ParameterCount sum;
    for (int stage : plan_.schedule.stages_of_rank(rank)) {
      const ParameterCount p = chunk_of(stage).owned();
      sum.dense += p.dense;
      sum.experts += p.experts;
    }
    return sum;
  }

  const StepPlan& plan_;
  const Machine& machine_;
  const StepGraphOptions& options_;
  StageBoundaries boundaries_;
  GraphBuilder builder_;
  StepGraph graph_;
  RankEmitter emitter_;
  ParameterTraffic parameters_;
  ActivationCopies copies_;
  VisionTasks vision_;
  TaskId last_compute_ = kNoTask;
  Endpoints ends_;
  std::vector<int> expert_rank_;  // by represented replica
  std::vector<std::vector<TaskId>> rank_done_;
  std::vector<RankEmitter::RankMark> rank_streams_;
  std::uint32_t optimizer_label_ = 0, barrier_label_ = 0, overhead_label_ = 0, fetch_label_ = 0, state_label_ = 0,
                statistics_label_ = 0;
};

}  // namespace

const char* to_string(StepTask t) {
  return kStepTaskNames[static_cast<std::size_t>(t)];
}

StepGraph build_step_graph(const StepPlan& plan, const Machine& machine, const StepGraphOptions& options) {
  return std::move(StepBuilder(plan, machine, options)).build();
}

}  // namespace k3sim
