// Walks every idle gap of a compute stream back along the tasks that bound it, so that the parts of a rank sum to the
// step exactly. Source: Holistic Trace Analysis (idle attribution), engine-design section 13.
#include "models/build/breakdown.h"

#include <algorithm>

#include "models/build/schedule_costs.h"
#include "models/build/step_emitter.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

// The task whose end let each task start: the latest-finishing predecessor, lowest id among equals.
std::vector<TaskId> binding_predecessors(const TaskGraph& g, const TaskTimes& times) {
  std::vector<TaskId> binding(g.task_count());
  const auto offer = [&](TaskId before, TaskId after) {
    TaskId& b = binding[after.value];
    if (!b.valid() || times.finish[before.value] > times.finish[b.value] ||
        (times.finish[before.value] == times.finish[b.value] && before < b))
      b = before;
  };
  for (std::uint32_t t = 0; t < g.task_count(); ++t)
    for (TaskId next : g.successors(TaskId(t))) offer(TaskId(t), next);
  for (std::uint32_t s = 0; s < g.stream_count(); ++s) {
    const auto tasks = g.stream_tasks(StreamId(s));
    for (std::size_t i = 1; i < tasks.size(); ++i) offer(tasks[i - 1], tasks[i]);
  }
  return binding;
}

Time first_start(const TaskTimes& times, std::span<const TaskId> tasks) {
  return tasks.empty() ? Time() : times.start[tasks.front().value];
}

class Attribution {
 public:
  Attribution(const StepGraph& graph, const TaskTimes& times)
      : graph_(graph),
        g_(graph.built.graph),
        times_(times),
        binding_(binding_predecessors(g_, times)),
        period_(step_period(graph, times)) {}

  RankBreakdown rank(int rank, int replica, StreamId compute, std::vector<IdlePiece>* pieces) {
    RankBreakdown b;
    b.rank = rank;
    open_window(rank, replica, compute);
    const RankId own = g_.info(compute).rank;
    const Time origin = graph_.staggered ? first_start(times_, g_.stream_tasks(compute)) : Time();
    Time cursor = origin;
    for (TaskId t : g_.stream_tasks(compute)) {
      const Time start = times_.start[t.value], finish = times_.finish[t.value];
      if (start > cursor) idle(b, own, binding_[t.value], cursor, start, pieces);
      busy(b, t, finish - start);
      cursor = finish;
    }
    if (origin + period_ > cursor) b.wait += origin + period_ - cursor;
    CS_CHECK(b.sum() == period_, "breakdown of rank {} sums to {} ps, step is {} ps", rank, b.sum().picoseconds(),
             period_.picoseconds());
    return b;
  }

 private:
  // From the rank's first backward to its last forward.
  void open_window(int rank, int replica, StreamId compute) {
    first_backward_ = Time::max();
    last_forward_ = Time();
    for (const ActionSpan& span : graph_.spans) {
      if (span.rank != rank || span.replica != replica || span.first == span.end) continue;
      bool forward = false, backward = false;
      for_each_part(span.action, [&](const Action& part) {
        forward = forward || part.kind == ActionKind::kForward;
        backward = backward || yields_input_grad(part.kind);
      });
      for (std::uint32_t t = span.first; t < span.end; ++t) {
        if (g_.stream(TaskId(t)) != compute) continue;
        if (backward) first_backward_ = std::min(first_backward_, times_.start[t]);
        if (forward) last_forward_ = std::max(last_forward_, times_.finish[t]);
      }
    }
  }

  void split_bubble(BubbleCauses& why, Time start, Time end) const {
    const Time warm = std::min(end, first_backward_);
    if (warm > start) why.warm_up += warm - start, start = warm;
    const Time cool = std::max(start, last_forward_);
    if (end > cool) why.cool_down += end - cool, end = cool;
    if (end > start) why.dependency += end - start;
  }

  void busy(RankBreakdown& b, TaskId t, Time duration) const {
    const auto kind = static_cast<StepTask>(g_.kind(t));
    if (kind == StepTask::optimizer) {
      b.optimizer += duration;
    } else if (kind == StepTask::recompute) {
      b.recompute += duration;
    } else if (kind == StepTask::transfer) {
      b.pp += duration;
    } else if (kind == StepTask::vision) {
      b.vision += duration;
    } else {
      coarse(b, t, duration);
    }
  }

  // A whole-pass task hides its communication: split it by the pass summary. Kernel tasks have no communication inside.
  void coarse(RankBreakdown& b, TaskId t, Time duration) const {
    const TaskLabel& label = graph_.labels[g_.tag(t)];
    if (graph_.detail == StepGraphOptions::Detail::kernel || label.pass == nullptr) {
      b.compute += duration;
      return;
    }
    const PassSummary& s = label.pass->summary;
    const auto lane = [&](Lane l) { return s.exposed[static_cast<std::size_t>(l)]; };
    b.tp += lane(Lane::tp_comm);
    b.cp += lane(Lane::cp_comm);
    b.ep += lane(Lane::ep_comm);
    const Time exposed = lane(Lane::tp_comm) + lane(Lane::cp_comm) + lane(Lane::ep_comm);
    b.host += duration - s.elapsed;
    b.recompute += s.recompute;
    b.compute += s.elapsed - exposed - s.recompute;
  }

  // Walks back from what ended the gap [from, to): each task on the way explains the part during which it ran.
  void idle(RankBreakdown& b, RankId own, TaskId cause, Time from, Time to, std::vector<IdlePiece>* pieces) const {
    Time end = to;
    const auto explain = [&](Time start, Time RankBreakdown::*part, TaskId task) {
      b.*part += end - start;
      if (part == &RankBreakdown::bubble) split_bubble(b.why, start, end);
      if (pieces != nullptr) pieces->push_back({b.rank, start, end, part, task});
      end = start;
    };
    while (end > from && cause.valid()) {
      const Time start = std::max(from, times_.start[cause.value]);
      if (start < end) explain(start, slot(own, cause), cause);
      cause = binding_[cause.value];
    }
    if (end > from) explain(from, &RankBreakdown::bubble, TaskId());
  }

  Time RankBreakdown::*slot(RankId own, TaskId t) const {
    const bool mine = g_.info(g_.stream(t)).rank == own;
    const auto if_mine = [&](Time RankBreakdown::*part) { return mine ? part : &RankBreakdown::bubble; };
    switch (static_cast<StepTask>(g_.kind(t))) {
      case StepTask::transfer:
        return &RankBreakdown::pp;
      case StepTask::tp_comm:
        return if_mine(&RankBreakdown::tp);
      case StepTask::cp_comm:
        return if_mine(&RankBreakdown::cp);
      case StepTask::ep_comm:
        return if_mine(&RankBreakdown::ep);
      case StepTask::param_gather:
      case StepTask::grad_reduce:
        return if_mine(&RankBreakdown::dp);
      case StepTask::host:
        return if_mine(&RankBreakdown::host);
      case StepTask::offload:
      case StepTask::onload:
        return if_mine(&RankBreakdown::offload);
      case StepTask::barrier:
        return &RankBreakdown::wait;
      default:
        // An unfolded peer of the same stage that is not done yet: ranks out of balance.
        return !mine && same_stage(own, g_.info(g_.stream(t)).rank) ? &RankBreakdown::wait : &RankBreakdown::bubble;
    }
  }

  static bool same_stage(RankId a, RankId b) { return b.valid() && stage_of(a) == stage_of(b); }

  const StepGraph& graph_;
  const TaskGraph& g_;
  const TaskTimes& times_;
  std::vector<TaskId> binding_;
  Time period_, first_backward_, last_forward_;
};

// Over the represented replicas of one stage; what does not divide goes to `wait`, so that the sum stays the step, and
// to `dependency` inside the bubble.
RankBreakdown mean_of(const std::vector<RankBreakdown>& replicas) {
  RankBreakdown mean = replicas.front();
  const auto n = static_cast<std::int64_t>(replicas.size());
  if (n == 1) return mean;
  for (Time RankBreakdown::*part :
       {&RankBreakdown::compute, &RankBreakdown::recompute, &RankBreakdown::optimizer, &RankBreakdown::tp,
        &RankBreakdown::cp, &RankBreakdown::ep, &RankBreakdown::pp, &RankBreakdown::dp, &RankBreakdown::offload,
        &RankBreakdown::bubble, &RankBreakdown::host, &RankBreakdown::wait, &RankBreakdown::vision}) {
    std::int64_t sum = 0;
    for (const RankBreakdown& r : replicas) sum += (r.*part).picoseconds();
    mean.*part = Time::ps(sum / n);
  }
  for (Time BubbleCauses::*cause : {&BubbleCauses::warm_up, &BubbleCauses::cool_down}) {
    std::int64_t sum = 0;
    for (const RankBreakdown& r : replicas) sum += (r.why.*cause).picoseconds();
    mean.why.*cause = Time::ps(sum / n);
  }
  mean.why.dependency = mean.bubble - mean.why.warm_up - mean.why.cool_down;
  mean.wait += replicas.front().sum() - mean.sum();
  return mean;
}

}  // namespace

Time step_period(const StepGraph& graph, const TaskTimes& times) {
  if (!graph.staggered) return times.makespan;
  const TaskGraph& g = graph.built.graph;
  Time longest, last_update;
  for (const std::vector<StreamId>& replicas : graph.compute_stream) {
    const auto tasks = g.stream_tasks(replicas.front());
    if (tasks.empty()) continue;
    const Time end = times.finish[tasks.back().value];
    last_update = std::max(last_update, end);
    longest = std::max(longest, end - first_start(times, tasks));
  }
  // What follows the last update (late parameter gather, framework) is paid in every step.
  return longest + (times.makespan - last_update);
}

std::vector<RankBreakdown> break_down(const StepGraph& graph, const TaskTimes& times, std::vector<IdlePiece>* idle) {
  Attribution attribution(graph, times);
  std::vector<RankBreakdown> out;
  for (std::size_t r = 0; r < graph.compute_stream.size(); ++r) {
    std::vector<RankBreakdown> replicas;
    for (const StreamId compute : graph.compute_stream[r]) {
      const auto replica = static_cast<int>(replicas.size());
      replicas.push_back(attribution.rank(static_cast<int>(r), replica, compute, replica == 0 ? idle : nullptr));
    }
    out.push_back(mean_of(replicas));
  }
  return out;
}

void find_imbalance(const StepPlan& plan, std::vector<RankBreakdown>& ranks) {
  if (std::all_of(ranks.begin(), ranks.end(), [](const RankBreakdown& b) { return b.why.dependency == Time(); }))
    return;
  const Timeline timeline = time_schedule(plan.schedule, schedule_costs(plan));
  for (RankBreakdown& b : ranks) {
    const IdleTime& idle = timeline.ranks[static_cast<std::size_t>(b.rank)].idle;
    const Time both = idle.imbalance + idle.dependency;
    if (both == Time()) continue;
    b.why.imbalance = scale(b.why.dependency, idle.imbalance / both);
    b.why.dependency -= b.why.imbalance;
  }
}

}  // namespace k3sim
