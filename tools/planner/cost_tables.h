// What the candidates of a search share: timed layers per split and policy, and per number of model chunks the cost of
// every chunk. Built once, in parallel, before the search; read-only afterwards.
// The split key leaves out what no layer program depends on (pp, vpp, dp, schedule, optimizer, batch size, node count);
// tests/property/tools/planner checks that predictions with shared tables are those without.
// Source: engine-design section 9 and 16.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "models/build/step_plan.h"
#include "models/config/space.h"
#include "tools/planner/evaluate.h"
#include "tools/planner/layout_rules.h"

namespace k3sim {

// Least costs of one micro-batch on one chunk, in seconds and bytes; what no schedule can avoid.
struct ChunkCost {
  double forward = 0, input = 0, weight = 0, backward = 0;  // own compute stream, disjoint between actions
  double forward_busy = 0, backward_busy = 0;               // compute lane alone, where actions interleave
  double forward_out = 0, input_out = 0;                    // first item to what the neighbour waits for
  double network = 0;                                       // busiest of the communication lanes
  double copies = 0;                                        // offload, one direction
  double saved = 0;                                         // bytes kept on the GPU
  ParameterCount parameters, largest_layer;
};

struct ChunkTable {
  std::shared_ptr<const std::vector<Chunk>> chunks;
  std::vector<ChunkCost> costs;
};

struct LayerTable {
  std::shared_ptr<const LayerSet> layers;
  const Machine* machine = nullptr;
  Flops flops_per_token;  // trained_flops_per_token
  std::map<int, ChunkTable> by_chunks;
  bool anchored = true;  // every cost rests on a measurement or a datasheet
};

ChunkCost chunk_cost(const Chunk& chunk, const Machine& machine);

// A configuration that passed the layout rules.
struct Candidate {
  std::int64_t index = 0;
  Layout layout;
  std::size_t table = 0;  // of CostTables
  const ChunkTable* chunks = nullptr;
  double bound = 0;  // lower bound of the objective
};

struct TableOptions {
  int threads = 1;
  bool allow_assumed = false;
};

class CostTables {
 public:
  explicit CostTables(const SearchSpace& space);
  // Number of the table for this choice of values; made by build().
  std::size_t key(const std::vector<int>& choice, const Scenario& scenario);
  // Makes every table that the candidates need. Those whose scenario cannot be timed, or rests on assumed costs that
  // are not allowed, are dropped with a reason.
  void build(std::vector<Candidate>& candidates, MachineStore& machines, const TableOptions& options, Reasons& reasons);
  const LayerTable& table(std::size_t i) const { return tables_[i]; }

 private:
  std::string make_table(LayerTable& table, const std::map<int, std::int64_t>& wanted, MachineStore& machines) const;
  void cut_by_plan(std::vector<Candidate>& candidates, MachineStore& machines, int threads);

  const SearchSpace& space_;
  std::vector<bool> in_key_;  // axes that layer programs depend on
  std::map<std::vector<int>, std::size_t> keys_;
  std::vector<LayerTable> tables_;
  std::deque<ChunkTable> own_;  // of candidates whose layers are cut by their own balance
};

// The scenario of a candidate without the checks (fast); space.scenario(index) is the checked one.
Scenario quick_scenario(const SearchSpace& space, std::int64_t index);

// Runs work(i) for i in [0, n) on some threads; work must not throw.
void in_parallel(std::size_t n, int threads, const std::function<void(std::size_t)>& work);

}  // namespace k3sim
