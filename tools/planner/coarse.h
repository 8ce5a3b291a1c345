// The step with one task per schedule action (detail L = 1): what ranks the candidates of a search before any of them
// is simulated kernel by kernel.
//
//   duration of an action = sum over its layers of max(layer alone, launches), but not less than its copies from host
//   transfers, the first parameter gather and the last gradient reduction run beside it; the optimizer follows the last
// The task graph depends on the schedule alone, so that candidates share it and only durations are filled in. Steps of
// more than 16 rounds of the pipeline are extended from the last round of a shorter one: from there on all rounds are
// the same. Valid for schedules without overlapped pairs, slices and staggered ends (`simple`); others are simulated
// layer by layer. Source: engine-design sections 1, 16 and 17 (coarse step).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "models/build/machine.h"
#include "models/build/step_plan.h"
#include "sim/graph/graph_builder.h"
#include "sim/graph/longest_path.h"
#include "tools/planner/layout_rules.h"

namespace k3sim {

// By stage of the schedule, per micro-batch.
struct CoarseCosts {
  std::vector<Time> forward, backward, input, weight;
  std::vector<Time> send, send_back;  // to the next stage, to the stage before; 0 inside a rank
  std::vector<Time> gather, reduce;
  Time tail;  // norm, optimizer, late gather, framework
};
CoarseCosts coarse_costs(const StepPlan& plan, const Machine& machine);

class CoarseTopology {
 public:
  // `beside`: transfers have their own streams.
  CoarseTopology(const Schedule& schedule, bool beside);
  Time step(const CoarseCosts& costs) const;
  std::size_t tasks() const { return slots_.size(); }

 private:
  enum class Slot : std::uint8_t { forward, backward, input, weight, send, send_back, gather, reduce, tail };
  struct Filled {
    Slot slot;
    std::int16_t stage;
  };
  class Builder;

  std::vector<Filled> slots_;  // by task; filled while the graph is made
  TaskGraph graph_;
};

// What the candidates with one schedule, layout of stages and number of micro-batches share.
struct SharedSchedule {
  std::shared_ptr<const Schedule> brief;  // of a few rounds: same stages, same warm-up, same memory
  bool simple = false;
  std::unique_ptr<CoarseTopology> topology, shorter;  // `shorter`: one round less, when the step is extended
  double rounds_beyond = 0;
  Time step(const CoarseCosts& costs) const;
};

class ScheduleStore {
 public:
  const SharedSchedule& get(const Scenario& scenario, const Layout& layout);  // thread-safe

 private:
  using Key = std::tuple<std::string, int, int, bool, bool, bool, int, std::int64_t>;
  struct Entry {
    std::once_flag once;
    SharedSchedule shared;
  };
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace k3sim
