// See activation_copies.h. Source: k3-facts 2.4.
#include "models/build/activation_copies.h"

#include "models/build/host_copies.h"

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

TaskId ActivationCopies::add_copy(const TimedLayer& layer, bool to_gpu) {
  TrafficList traffic;
  if (layer.offloaded > Bytes(0)) traffic.push_back(host_copy_traffic(machine_, layer.offloaded, to_gpu));
  if (layer.remote > Bytes(0)) {
    CommCost hop = plan_.comm->pipeline_hop(layer.remote);
    const int ranks = plan_.schedule.ranks, mirrored = ranks - 1 - rank_;
    hop.traffic.peer = mirrored != rank_ ? mirrored : (rank_ + 1) % ranks;
    hop.traffic.alone = layer.remote / network_;
    hop.traffic.latency = Time();
    hop.traffic.inner = !to_gpu;
    if (ranks > 1) traffic.push_back(hop.traffic);
  }
  return emitter_.add_flow(to_gpu ? StreamRole::onload : StreamRole::offload,
                           to_gpu ? StepTask::onload : StepTask::offload, copy_time(layer), label_, traffic);
}

void ActivationCopies::attach(PassWalk& walk, const Action& a) {
  if (!yields_input_grad(a.kind)) return;
  for (std::size_t i = 0; i < walk.steps.size(); ++i) {
    const TimedLayer& layer = layer_of(walk.steps[i]);
    if (copy_time(layer) == Time()) continue;
    const TaskId task = add_copy(layer, true);
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
  emitter_.depend(walk.tail, add_copy(layer, false));
}

}  // namespace k3sim
