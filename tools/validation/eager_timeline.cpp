#include "tools/validation/eager_timeline.h"

namespace k3sim {

void EagerTimeline::run(const Kernel& k) {
  if (k.launches == 0 && k.bytes == Bytes(0) && k.flops.value() == 0) return;
  const KernelTime t = cost_.time(k);
  host_ += k.launches * host_launch_;
  gpu_ = std::max(gpu_, host_) + t.time;
  provenance_ = worst(provenance_, t.provenance);
}

void EagerTimeline::run(const std::vector<Item>& items) {
  for (const Item& item : items)
    if (!item.is_comm) run(item.kernel);
}

}  // namespace k3sim
