// The request log of one pipeline rank's step, its replay through the caching allocator, and what a reader wants to
// know about it: peaks, who is alive at the peak, the curve over the step by category, where memory runs out and which
// knobs would save it. Host issue order throughout; the log needs no clock (action_ends ties it to the schedule for
// plots). Source: engine-design section 10; allocator: sim/mem/README.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/build/memory_log_walk.h"
#include "sim/mem/timeline.h"

namespace k3sim {

struct MemoryLog {
  RequestLog requests;
  std::vector<MemoryPlace> places;       // by AllocationSpec::tag
  std::vector<Action> actions;           // in issue order, all steps
  std::vector<std::size_t> action_ends;  // log position after each action
  std::size_t last_step = 0;             // log position where the last step begins
};

MemoryLog memory_log(const StepPlan& plan, const SoftwareProfile& software, int rank, const MemoryWalkOptions& options);

// Allocator settings of the scenario, else of the software stack.
AllocatorPolicy allocator_policy(const Scenario& scenario, const SoftwareProfile& software);

struct LivePart {
  std::string what;  // "layer 12 ffn.up of micro-batch 3"
  MemoryCategory category = MemoryCategory::activations;
  Bytes bytes;
};

struct MemoryReport {
  int rank = 0;
  Bytes peak_allocated, peak_reserved, capacity;
  std::string peak_at;            // schedule action, for example "3B17"
  MemoryTimeline timeline;        // curve and breakdown by category
  std::vector<LivePart> at_peak;  // largest first
  std::size_t requests = 0;
  int retries = 0;                           // times the allocator gave unused segments back to satisfy a request
  std::optional<std::string> out_of_memory;  // where the first request did not fit: action, tensor, numbers
  std::vector<LivePart> at_failure;
  std::vector<std::string> knobs;  // what would save memory, largest effect first
  std::vector<std::size_t> action_ends;
  std::vector<Action> actions;
  // Reserved beyond what was allocated at most, as a share of the latter.
  double overhead() const { return peak_allocated.count() == 0 ? 0 : peak_reserved / peak_allocated - 1; }
};

struct MemoryReportOptions {
  MemoryWalkOptions walk{.steps = 2};
  Bytes available{0};  // for the allocator; 0: no limit
  std::size_t curve_points = 500;
  bool details = true;  // timeline, live lists and knobs; false: peaks only
};

MemoryReport memory_report(const StepPlan& plan, const Machine& machine, int rank, const MemoryReportOptions& options);

}  // namespace k3sim
