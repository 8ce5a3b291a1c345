// Progress of the tasks that slow each other down, device by device: piecewise-constant rates on integer work.
//
// When the set of classes active on a device changes, every task whose factor changes is brought up to date:
//   remaining -= progress(now - since, factor);  since = now;  finish = now + time_for(remaining, new factor)
// and gets a new predicted completion with the next generation; the outdated event is ignored when it is popped. Each
// change of rate costs a task less than one picosecond of work, always in the same direction (late).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/slowdown.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

class DeviceSharing {
 public:
  // Requires: the table outlives this object.
  DeviceSharing(const TaskGraph& graph, const SlowdownTable& table);

  // Does this task share its device with others?
  bool shares(TaskId task) const;

  void start(TaskId task, Time work, Time now);
  // True when the event is the task's current prediction; the task then leaves its device.
  bool finish(const Event& event);
  bool outdated(const Event& event) const;

  // Re-predicts what changed since the last call; pushes the new completions. Returns how many events it made outdated.
  std::size_t update(Time now, EventQueue& queue);

 private:
  struct Running {
    TaskId task;
    ResourceClass resource = kExclusive;
    std::uint64_t generation = 0;
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
  std::size_t update(Device& device, Time now, EventQueue& queue);

  const TaskGraph* graph_;
  const SlowdownTable* table_;
  std::vector<std::uint32_t> device_of_stream_;
  std::vector<Device> devices_;
  std::vector<std::uint32_t> changed_;
  std::uint64_t next_generation_ = 1;
};

}  // namespace k3sim
