// Progress of the tasks that slow each other down, device by device: piecewise-constant rates on integer work.
//
// When the set of classes active on a device changes, every task whose factor changes is brought up to date:
//   remaining -= progress(now - since, factor);  since = now;  finish = now + time_for(remaining, new factor)
// and gets a new predicted completion, which replaces the old one in the queue. Each
// change of rate costs a task less than one picosecond of work, always in the same direction (late).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/slowdown.h"
#include "sim/engine/stream_queue.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

class DeviceSharing {
 public:
  // Requires: the table outlives this object.
  DeviceSharing(const TaskGraph& graph, const SlowdownTable& table);

  // Does this task share its device with others?
  bool shares(TaskId task) const;

  void start(TaskId task, Time work, Time now);
  void finish(TaskId task);  // Requires: it runs; its prediction has come.

  // Re-predicts what changed since the last call. Returns how many predictions of running tasks it replaced.
  std::size_t update(Time now, StreamQueue& queue);

 private:
  struct Running {
    TaskId task;
    ResourceClass resource = kExclusive;
    std::int64_t factor = 0;  // 0: just started, nothing predicted yet
    Time remaining;           // at full speed, as of `since`
    Time since;
  };
  struct Device {
    std::vector<Running> running;
    std::uint32_t count[kSharedClasses] = {};  // running tasks by class
    bool changed = false;
  };

  void mark_changed(std::uint32_t device);
  std::size_t update(Device& device, Time now, StreamQueue& queue);

  const TaskGraph* graph_;
  const SlowdownTable* table_;
  std::vector<std::uint32_t> device_of_stream_;
  std::vector<Device> devices_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace k3sim
