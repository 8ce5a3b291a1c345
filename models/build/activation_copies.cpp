// See activation_copies.h. Source: k3-facts 2.4.
#include "models/build/activation_copies.h"

namespace k3sim {

ActivationCopies::ActivationCopies(const StepPlan& plan, const Machine& machine, RankEmitter& emitter)
    : plan_(plan),
      host_(machine.gpu.host_link),
      network_(machine.comm.scale_out.nic_payload),
      emitter_(emitter),
      label_(emitter.label("activation copy")) {}

Time ActivationCopies::copy_time(const PassStep& step) const {
  const TimedLayer& layer =
      *plan_.chunks[static_cast<std::size_t>(step.chunk)].steps()[static_cast<std::size_t>(step.part)].timed;
  Time t;
  if (layer.offloaded > Bytes(0)) t += layer.offloaded / host_;
  if (layer.remote > Bytes(0)) t += layer.remote / network_;
  return t;
}

void ActivationCopies::attach(PassWalk& walk, const Action& a) {
  if (!yields_input_grad(a.kind)) return;
  for (std::size_t i = 0; i < walk.steps.size(); ++i) {
    const Time t = copy_time(walk.steps[i]);
    if (t == Time()) continue;
    const TaskId task = emitter_.add(StreamRole::onload, StepTask::onload, t, label_);
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
  const Time t = copy_time(step);
  if (!forward || t == Time()) return;
  emitter_.depend(walk.tail, emitter_.add(StreamRole::offload, StepTask::offload, t, label_));
}

}  // namespace k3sim
