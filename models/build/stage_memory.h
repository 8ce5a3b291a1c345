// Memory of every pipeline rank over the step: the walk of memory_log_walk.h counted per layer pass, which gives the
// allocated peak of all ranks in microseconds, and the emulated allocator on the fullest ranks for reserved bytes.
// "Does not fit" is a result: short_by says how many bytes are missing.
//   reserved of the other ranks = their allocated peak x the largest overhead seen on an emulated rank
// When the fullest rank would reserve more than there is but not allocate it, its log is emulated again with the memory
// there is: the allocator gives unused segments back before it fails, which costs time, not the step.
// Source: engine-design section 10; k3-facts 1.5, 2.4.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/build/machine.h"
#include "models/build/memory_log_sink.h"
#include "models/build/step_plan.h"
#include "models/memory/states.h"

namespace k3sim {

struct RankMemory {
  int rank = 0;
  StateBytes states;
  Bytes activations;         // alive at the peak, kept tensors and pipeline buffers
  Bytes transient;           // the running layer's pass at the peak: workspace, gradients, replayed tensors
  Bytes staging;             // dispatcher buffers, gathered parameters and unsharded gradients at the peak
  Bytes outside;             // context, communicators, library workspaces
  Bytes host_activations;    // offloaded, at their peak
  Bytes remote_activations;  // kept by another pipeline rank, at their peak
  Bytes partner_pool;        // held on this GPU for another rank (remote_pool.h)
  Bytes allocated;           // peak by the framework's allocator
  Bytes reserved;            // by the allocator, fragmentation included; what lies outside is in `outside`
  Bytes short_by;            // 0 when it fits
  std::string peak_action;   // where the peak is, for example "3B17"
  bool emulated = false;     // reserved comes from the emulated allocator
  int retries = 0;           // emulated: times cached segments had to be given back for the step to fit
  Bytes host() const { return host_activations + states.host_optimizer + states.host_gradients; }
};

// Bytes around one action of a rank's schedule.
struct MemoryStep {
  Bytes after;                                  // activations kept when the action has ended
  Bytes during;                                 // activations, most at once while it runs, transient tensors included
  Bytes peak;                                   // of everything allocated, most at once while it runs
  std::array<Bytes, kMemoryCategories> live{};  // by MemoryCategory when the action has ended
  Bytes host, remote;                           // activations in host memory and on another rank then
};

// One entry per action.
std::vector<MemoryStep> memory_steps(const StepPlan& plan, int rank, const SoftwareProfile& software = {});

struct MemoryOptions {
  int emulated_ranks = 1;  // fullest ranks whose allocator is emulated; 0: the stack's fragmentation constant
  std::size_t request_limit = 300'000;  // of one emulated log; longer steps are cut to the first micro-batches
};

std::vector<RankMemory> memory_per_rank(const StepPlan& plan, const Machine& machine,
                                        const MemoryOptions& options = {});
// One rank alone, without the emulated allocator.
RankMemory counted_memory(const StepPlan& plan, const Machine& machine, int rank);

// Everything about one rank's memory over two steps in the memory that the allocator has: who is alive at the peak, the
// curve by category, where it runs out. Long steps are cut to their first micro-batches as in memory_per_rank.
struct MemoryReport;
MemoryReport rank_memory_report(const StepPlan& plan, const Machine& machine, int rank,
                                const MemoryOptions& options = {});

struct OutsidePart {
  std::string what;
  Bytes bytes;
};
// What the process takes before and beside the allocator, item by item: context, communicators, symmetric buffers.
// Workspaces of libraries come from the allocator and count as allocated.
std::vector<OutsidePart> outside_parts(const StepPlan& plan, const Machine& machine);
// Their sum.
Bytes outside_allocator(const StepPlan& plan, const Machine& machine);

}  // namespace k3sim
