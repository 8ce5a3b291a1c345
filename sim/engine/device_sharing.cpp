// Bookkeeping of running tasks per device; see the header for the rule. Lists are as long as a device has busy streams,
// so linear searches are cheapest. Source: engine-design notes section 4.
#include "sim/engine/device_sharing.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {

namespace {
constexpr std::uint32_t kNoDevice = std::numeric_limits<std::uint32_t>::max();
}  // namespace

DeviceSharing::DeviceSharing(const TaskGraph& graph, const SlowdownTable& table) : graph_(&graph), table_(&table) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t s = 0; s < graph.stream_count(); ++s) {
    if (graph.info(StreamId(s)).rank.valid()) ranks.push_back(graph.info(StreamId(s)).rank.value);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  devices_.resize(ranks.size());
  for (std::size_t s = 0; s < graph.stream_count(); ++s) {
    const RankId rank = graph.info(StreamId(s)).rank;
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank.value) - ranks.begin();
    device_of_stream_.push_back(rank.valid() ? static_cast<std::uint32_t>(at) : kNoDevice);
  }
}

bool DeviceSharing::shares(TaskId task) const {
  return shared_class(graph_->resource(task)) != kExclusive &&
         device_of_stream_[graph_->stream(task).value] != kNoDevice;
}

void DeviceSharing::mark_changed(std::uint32_t device) {
  if (devices_[device].changed) return;
  devices_[device].changed = true;
  changed_.push_back(device);
}

void DeviceSharing::start(TaskId task, Time work, Time now) {
  const std::uint32_t d = device_of_stream_[graph_->stream(task).value];
  const ResourceClass resource = graph_->resource(task), c = shared_class(resource);
  if (!is_external(resource))
    devices_[d].running.push_back({.task = task, .resource = c, .remaining = work, .since = now});
  ++devices_[d].count[c];
  mark_changed(d);
}

void DeviceSharing::finish(TaskId task) {
  const std::uint32_t d = device_of_stream_[graph_->stream(task).value];
  --devices_[d].count[shared_class(graph_->resource(task))];
  mark_changed(d);
  if (is_external(graph_->resource(task))) return;
  std::vector<Running>& running = devices_[d].running;
  const auto at = std::find_if(running.begin(), running.end(), [&](const Running& r) { return r.task == task; });
  CS_CHECK(at != running.end(), "task {} ends on device {} without running there", task.value, d);
  *at = running.back();  // order among the running does not matter: completions are ordered by the queue
  running.pop_back();
}

std::size_t DeviceSharing::update(Time now, StreamQueue& queue) {
  std::size_t replaced = 0;
  for (std::uint32_t d : changed_) {
    replaced += update(devices_[d], now, queue);
    devices_[d].changed = false;
  }
  changed_.clear();
  return replaced;
}

std::size_t DeviceSharing::update(Device& device, Time now, StreamQueue& queue) {
  std::size_t replaced = 0;
  for (Running& r : device.running) {
    std::uint32_t others = 0;
    for (std::uint32_t c = 1; c < kSharedClasses; ++c) {
      if (device.count[c] > (c == r.resource ? 1U : 0U)) others |= 1U << c;
    }
    const std::int64_t factor = table_->factor(r.resource, others);
    if (factor == r.factor) continue;
    if (r.factor != 0) {
      r.remaining -= std::min(r.remaining, SlowdownTable::progress(now - r.since, r.factor));
      ++replaced;
    }
    r.since = now;
    r.factor = factor;
    const Time finish = now + SlowdownTable::time_for(r.remaining, factor);
    queue.set(graph_->stream(r.task), finish, Event::make_key(Priority::complete, r.task.value));
  }
  return replaced;
}

}  // namespace k3sim
