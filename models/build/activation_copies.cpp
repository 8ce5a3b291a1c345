// See activation_copies.h. Source: k3-facts 2.4.
#include "models/build/activation_copies.h"

#include "models/build/host_copies.h"
#include "models/build/remote_pool.h"

namespace k3sim {

ActivationCopies::ActivationCopies(const StepPlan& plan, const Machine& machine, RankEmitter& emitter)
    : plan_(plan),
      machine_(machine),
      host_(machine.gpu.host_link),
      network_(machine.comm.scale_out.nic_payload),
      emitter_(emitter),
      label_(emitter.label("activation copy")) {}

const TimedLayer& ActivationCopies::layer_of(const PassStep& step) const {
  return *plan_.chunks[static_cast<std::size_t>(step.chunk)].steps()[static_cast<std::size_t>(step.part)].timed;
}

Time ActivationCopies::copy_time(const TimedLayer& layer) const {
  Time t;
  if (layer.offloaded > Bytes(0)) t += layer.offloaded / host_;
  if (layer.remote > Bytes(0)) t += layer.remote / network_;
  return t;
}

TaskId ActivationCopies::add_copy(Bytes to_host, Bytes to_rank, int peer, bool to_gpu) {
  TrafficList traffic;
  Time time;
  if (to_host > Bytes(0)) {
    time += to_host / host_;
    traffic.push_back(host_copy_traffic(machine_, to_host, to_gpu));
  }
  if (to_rank > Bytes(0)) {
    time += to_rank / network_;
    CommCost hop = plan_.comm->pipeline_hop(to_rank);
    hop.traffic.peer = peer;
    hop.traffic.alone = to_rank / network_;
    hop.traffic.latency = Time();
    hop.traffic.inner = !to_gpu;
    if (plan_.schedule.ranks > 1) traffic.push_back(hop.traffic);
  }
  return emitter_.add_flow(to_gpu ? StreamRole::onload : StreamRole::offload,
                           to_gpu ? StepTask::onload : StepTask::offload, time, label_, traffic);
}

int ActivationCopies::mirrored() const {
  const int ranks = plan_.schedule.ranks, other = ranks - 1 - rank_;
  return other != rank_ ? other : (rank_ + 1) % ranks;
}

void ActivationCopies::move(const Action& a) {
  const bool to_gpu = a.kind == ActionKind::kOnload, host = a.other_stage < 0;
  const Bytes bytes = lent_bytes(plan_, a.stage);
  const TaskId copy = add_copy(host ? bytes : Bytes(0), host ? Bytes(0) : bytes, a.other_stage, to_gpu);
  const Key key{a.stage, a.microbatch};
  emitter_.depend(before_last_end_, copy);
  if (to_gpu) {
    emitter_.depend(away_[key], copy);
    emitter_.depend(last_offload_, copy);
    back_[key] = copy;
  } else {
    emitter_.depend(forward_end_[key], copy);
    away_[key] = last_offload_ = copy;
  }
}

void ActivationCopies::action_ended(const Action& a, TaskId tail) {
  if (a.kind == ActionKind::kForward) forward_end_[{a.stage, a.microbatch}] = tail;
  before_last_end_ = last_end_;
  last_end_ = tail;
}

void ActivationCopies::attach(PassWalk& walk, const Action& a) {
  if (!yields_input_grad(a.kind)) return;
  const auto lent = back_.find({a.stage, a.microbatch});
  if (lent != back_.end() && !walk.steps.empty()) walk.steps.front().onload = lent->second;
  for (std::size_t i = 0; i < walk.steps.size(); ++i) {
    const TimedLayer& layer = layer_of(walk.steps[i]);
    if (copy_time(layer) == Time()) continue;
    const TaskId task = add_copy(layer.offloaded, layer.remote, mirrored(), true);
    emitter_.depend(walk.steps[i].onload, task);
    walk.steps[i].onload = task;
    if (i < kPrefetchLayers) emitter_.depend(recent_tails_[i], task);
  }
}

void ActivationCopies::pass_ended(const PassStep& step, const PassWalk& walk) {
  for (std::size_t i = 0; i + 1 < kPrefetchLayers; ++i) recent_tails_[i] = recent_tails_[i + 1];
  recent_tails_.back() = walk.tail;
  const std::size_t ahead = walk.step + kPrefetchLayers;
  if (ahead < walk.steps.size()) emitter_.depend(walk.tail, walk.steps[ahead].onload);
  const bool forward = !step.pass->items.empty() && step.pass->items.front().pass == Pass::forward &&
                       !step.pass->items.front().recompute;
  const TimedLayer& layer = layer_of(step);
  if (!forward || copy_time(layer) == Time()) return;
  emitter_.depend(walk.tail, add_copy(layer.offloaded, layer.remote, mirrored(), false));
}

}  // namespace k3sim
