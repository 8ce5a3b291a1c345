// "Does it fit, and on how few nodes?" For growing node counts the layouts of the space are tried, least bound first;
// the batch is set to what every layout can split, since memory depends only on the micro-batches in flight. The first
// layout that fits, with the emulated allocator and the host's memory, is the answer. It names the margin of every
// stage, the term that binds, and what each knob would free at which price. A layout is not looked at closer when its
// states alone, or with what its warm-up must hold, exceed the memory (bounds.h).
// Source: issue "What-if" (fit question first); peers.md (d) 5.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/planner/search.h"

namespace k3sim {

struct Knob {
  const char* name;
  std::vector<std::string> overrides;  // as --set takes them
};
const std::vector<Knob>& memory_knobs();  // a new knob is one line

struct KnobEffect {
  std::string name;
  double freed_gib = 0;          // on the fullest stage
  double freed_binding_gib = 0;  // of the term that binds
  double step_change_pct = 0;    // time per sequence
  int nodes = 0;                 // fewest on which the layout then fits
};

struct FitAnswer {
  std::string gpu;
  int nodes = 0;           // 0: nothing fits up to the limit
  std::int64_t index = 0;  // of the layout in the space
  std::string layout;
  Scenario scenario;               // with the batch that was tried
  BatchConfig asked;               // the space's
  std::vector<RankMemory> memory;  // per pipeline stage
  Bytes capacity;
  std::string binding;  // largest term on the fullest stage
  double binding_gib = 0;
  std::vector<KnobEffect>
      knobs;  // what frees memory of this layout: first those that free the binding term, cheapest first
};

struct FitOptions {
  int most_nodes = 1024;
  bool knobs = true;
  EvaluateOptions evaluate;
  WorkShare* share = nullptr;  // who searches the GPU types; null: this thread
};

// The first layout that fits.
struct FitPlace {
  int nodes = 0;  // 0: none
  std::int64_t index = 0;
};

// What fills a GPU, by name.
std::vector<std::pair<const char*, Bytes>> memory_terms(const RankMemory& memory);

// Memory of a layout whose batch has been set. `short_by`: of the GPUs or of a node's host memory.
struct FitTrial {
  Scenario scenario;
  std::vector<RankMemory> memory;
  Bytes worst, short_by;
  bool valid = false;
};
FitTrial fit_trial(Scenario scenario, MachineStore& machines, const StepReuse& reuse, int emulated_ranks);
// A batch that fills two rounds of the pipeline on every replica.
void set_fit_batch(Scenario& scenario);
// Nodes must be a multiple of this for the layout's groups to come out even.
int node_step(const Scenario& scenario);
void try_knobs(FitAnswer& answer, MachineStore& machines);

// One answer for every value of the cluster.gpu axis (or the one GPU). Every rank of the share gets all answers; only
// the searches themselves are shared.
std::vector<FitAnswer> smallest_fit(const SearchSpace& space, MachineStore& machines, const FitOptions& options);
// The same for several spaces, whose searches are shared as one list; answers by space, then GPU.
std::vector<std::vector<FitAnswer>> smallest_fits(const std::vector<SearchSpace>& spaces, MachineStore& machines,
                                                  const FitOptions& options);

}  // namespace k3sim
