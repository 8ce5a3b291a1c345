// Source: see predicted_step.h.
#include "tools/import/predicted_step.h"

#include <algorithm>

#include "models/build/step.h"
#include "tools/import/predicted_items.h"
#include "tools/import/step_items.h"

namespace k3sim {
namespace {

class StepTrace {
 public:
  StepTrace(const StepPrediction& p, int rank)
      : plan_(*p.plan),
        graph_(*p.graph),
        g_(graph_.built.graph),
        times_(*p.times),
        rank_(rank),
        items_(items_by_label(graph_)),
        launched_(g_.task_count(), -1) {
    for (std::uint32_t t = 0; t < g_.task_count(); ++t)
      if (kind_of(TaskId(t)) == StepTask::host)
        for (TaskId s : g_.successors(TaskId(t))) launched_[s.value] = nanoseconds(times_.finish[t]);
  }

  PredictedTrace run() {
    std::vector<const Action*> action(g_.task_count(), nullptr);
    for (const ActionSpan& s : graph_.spans)
      for (std::uint32_t t = s.first; t < s.end; ++t) action[t] = &s.action;
    for (std::uint32_t t = 0; t < g_.task_count(); ++t) {
      const RankId rank = g_.info(g_.stream(TaskId(t))).rank;
      if (rank.valid() && static_cast<int>(rank.value / 1'000'000) == rank_) add(TaskId(t), action[t]);
    }
    out_.span_ns = nanoseconds(times_.makespan);
    for (int s : plan_.schedule.stages_of_rank(rank_)) out_.layers += static_cast<int>(chunk_of(s).steps().size());
    return std::move(out_);
  }

 private:
  static std::int64_t nanoseconds(Time t) { return t.picoseconds() / 1000; }
  StepTask kind_of(TaskId t) const { return static_cast<StepTask>(g_.kind(t)); }
  const Chunk& chunk_of(int stage) const {
    return plan_.chunks[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
  }

  bool is_forward(const TaskLabel& label) const {
    const Chunk& chunk = plan_.chunks[static_cast<std::size_t>(label.chunk)];
    return label.pass == &chunk.steps()[static_cast<std::size_t>(label.part)].timed->forward;
  }

  void add(TaskId t, const Action* action) {
    if (kind_of(t) == StepTask::host || kind_of(t) == StepTask::rendezvous) return;
    const TaskLabel& label = graph_.labels[g_.tag(t)];
    const TimedItem* item = items_[g_.tag(t)];
    PredictedWork w;
    if (item)
      w = work_of_item(*item, !is_forward(label), *plan_.placement);
    else
      describe(t, label, w);
    w.time.start_ns = nanoseconds(times_.start[t.value]);
    w.time.end_ns = nanoseconds(times_.finish[t.value]);
    w.time.launched_ns = launched_[t.value];
    w.time.stream = g_.info(g_.stream(t)).role;
    if (action && item) w.schedule_action = "PP:" + to_string(half_of(*action, is_forward(label)));
    if (w.time.end_ns > w.time.start_ns) out_.work.push_back(std::move(w));
  }

  static Action half_of(const Action& a, bool forward) {
    if (a.kind != ActionKind::kOverlap) return a;
    return (first_half(a).kind == ActionKind::kForward) == forward ? first_half(a) : second_half(a);
  }

  // Work outside the layers.
  void describe(TaskId t, const TaskLabel& label, PredictedWork& w) const {
    w.name = label.name;
    const Placement& p = *plan_.placement;
    switch (kind_of(t)) {
      case StepTask::param_gather:
        w.time.family = TraceFamily::collective;
        w.collective = collective_name("all_gather", p.group(GroupKind::dp).ranks);
        break;
      case StepTask::grad_reduce:
        w.time.family = TraceFamily::collective;
        w.collective = collective_name(plan_.scenario.optimizer.zero == 0 ? "all_reduce" : "reduce_scatter",
                                       p.group(GroupKind::dp).ranks);
        break;
      case StepTask::transfer:
        w.time.family = TraceFamily::point_to_point;
        w.collective = collective_name("send_recv", 2);
        break;
      case StepTask::optimizer:
        w.time.family = TraceFamily::optimizer;
        break;
      case StepTask::offload:
      case StepTask::onload:
        w.time.family = TraceFamily::copy;
        break;
      default:
        w.time.family = TraceFamily::other;
    }
    w.plain = w.time.family;
  }

  const StepPlan& plan_;
  const StepGraph& graph_;
  const TaskGraph& g_;
  const TaskTimes& times_;
  const int rank_;
  std::vector<const TimedItem*> items_;
  std::vector<std::int64_t> launched_;
  PredictedTrace out_;
};

}  // namespace

PredictedTrace predict_step_trace(const Scenario& scenario, const Machine& machine, int rank) {
  StepOptions options;
  options.allow_assumed = true;
  options.keep_graph = true;
  options.graph.detail = StepGraphOptions::Detail::kernel;
  const StepPrediction p = predict_step(scenario, machine, options);
  return StepTrace(p, rank).run();
}

}  // namespace k3sim
