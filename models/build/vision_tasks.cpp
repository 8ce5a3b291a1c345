// See vision_tasks.h. Source: k3-facts 2.8.
#include "models/build/vision_tasks.h"

#include <algorithm>

namespace k3sim {

VisionTasks::VisionTasks(const StepPlan& plan, const Machine& machine, RankEmitter& emitter)
    : plan_(plan), machine_(machine), emitter_(emitter) {
  if (!plan.vision.present()) return;
  backward_rank_.assign(plan.vision.microbatches.size(), 0);
  for (std::size_t r = 0; r < plan.schedule.actions.size(); ++r)
    for (const Action& a : plan.schedule.actions[r])
      if (a.kind == ActionKind::kVisionBackward)
        backward_rank_[static_cast<std::size_t>(a.microbatch)] = static_cast<int>(r);
  first_rank_ = plan.schedule.rank_of_stage.front();
  hop_ = plan.comm->pipeline_hop(plan.vision.embeddings).time;
  forward_label_ = emitter.label("vision forward");
  backward_label_ = emitter.label("vision backward");
  transfer_label_ = emitter.label("image embeddings");
  reduce_label_ = emitter.label("vision gradient reduce");
  gather_label_ = emitter.label("vision parameter gather");
}

Time VisionTasks::over_replicas(Collective kind, Bytes bytes) const {
  if (plan_.scenario.vision.placement == "stage0") return plan_.comm->collective(kind, bytes, GroupKind::dp).time;
  CommGroup world;
  world.ranks = plan_.placement->world();
  world.ranks_per_node = std::min(world.ranks, plan_.scenario.cluster.gpus_per_node);
  world.nodes = (world.ranks + world.ranks_per_node - 1) / world.ranks_per_node;
  return collective_time(machine_.comm, kind, bytes, world).time;
}

void VisionTasks::open_rank(int rank) {
  rank_ = rank;
  last_ = kNoTask;
}

bool VisionTasks::emit(const Action& a, int replica) {
  if (a.kind != ActionKind::kVisionForward && a.kind != ActionKind::kVisionBackward) return false;
  const std::size_t cells = plan_.vision.microbatches.size() * (static_cast<std::size_t>(replica) + 1);
  if (ends_.size() < cells) ends_.resize(cells);
  const VisionLoad& load = plan_.vision.microbatches[static_cast<std::size_t>(a.microbatch)];
  const bool forward = a.kind == ActionKind::kVisionForward;
  const bool gathers = forward && last_ == kNoTask && plan_.scenario.optimizer.zero >= 1;
  TaskId gather = kNoTask;
  if (gathers)
    gather = emitter_.add(StreamRole::param_gather, StepTask::param_gather,
                          over_replicas(Collective::all_gather, Bytes(2 * plan_.vision.parameters)), gather_label_);
  last_ = emitter_.add(StreamRole::compute, StepTask::vision, forward ? load.forward : load.backward,
                       forward ? forward_label_ : backward_label_);
  emitter_.depend(gather, last_);
  Ends& e = ends(a.microbatch, replica);
  if (!forward) {
    e.returned = last_;
    return true;
  }
  e.encoded = last_;
  if (rank_ != first_rank_) {
    e.encoded = emitter_.add(StreamRole::send_backward, StepTask::transfer, hop_, transfer_label_);
    emitter_.depend(last_, e.encoded);
  }
  return true;
}

void VisionTasks::first_stage_ran(const Action& a, int replica, TaskId task) {
  if (!plan_.vision.present()) return;
  const std::size_t cells = plan_.vision.microbatches.size() * (static_cast<std::size_t>(replica) + 1);
  if (ends_.size() < cells) ends_.resize(cells);
  Ends& e = ends(a.microbatch, replica);
  if (a.kind == ActionKind::kForward) {
    e.entered = task;
    return;
  }
  e.left = task;
  if (backward_rank_[static_cast<std::size_t>(a.microbatch)] == first_rank_) return;
  e.left = emitter_.add(StreamRole::send_forward, StepTask::transfer, hop_, transfer_label_);
  emitter_.depend(task, e.left);
}

void VisionTasks::close_rank(std::vector<TaskId>& done) {
  if (last_ == kNoTask) return;
  const Bytes gradients = plan_.vision.parameters * plan_.scenario.optimizer.gradient_bytes;
  const Collective kind = plan_.scenario.optimizer.zero >= 1 ? Collective::reduce_scatter : Collective::all_reduce;
  const TaskId reduce =
      emitter_.add(StreamRole::grad_reduce, StepTask::grad_reduce, over_replicas(kind, gradients), reduce_label_);
  emitter_.depend(last_, reduce);
  done.push_back(last_);
  done.push_back(reduce);
}

void VisionTasks::connect() {
  for (const Ends& e : ends_) {
    emitter_.depend(e.encoded, e.entered);
    emitter_.depend(e.left, e.returned);
  }
}

}  // namespace k3sim
