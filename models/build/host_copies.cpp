// See host_copies.h. Source: hardware notes 4.1.
#include "models/build/host_copies.h"

#include <algorithm>

namespace k3sim {

Traffic host_copy_traffic(const Machine& machine, Bytes bytes, bool to_gpu) {
  Traffic t;
  t.kind = to_gpu ? TrafficKind::from_host : TrafficKind::to_host;
  t.bytes = bytes.as_double();
  t.latency = machine.host.copy_latency;
  t.alone = t.latency + bytes / std::max(machine.gpu.host_link, machine.host.copy_rate);
  return t;
}

TaskId add_host_copy(RankEmitter& emitter, const Machine& machine, Bytes bytes, bool to_gpu, std::uint32_t label) {
  const TrafficList traffic = bytes > Bytes(0) ? TrafficList{host_copy_traffic(machine, bytes, to_gpu)} : TrafficList{};
  return emitter.add_flow(to_gpu ? StreamRole::onload : StreamRole::offload,
                          to_gpu ? StepTask::onload : StepTask::offload, bytes / machine.gpu.host_link, label, traffic);
}

}  // namespace k3sim
