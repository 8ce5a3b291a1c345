#include "tools/planner/cost_tables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "models/build/pair_actions.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

struct PassLeast {
  double span = 0;  // first item to last compute item when run alone; compute alone if it starts with communication
  double out = 0;   // first item to the last item that is no weight gradient
  double busy = 0;  // compute lane
  std::array<double, kLanes> lanes{};
};

PassLeast least(const TimedPass& pass) {
  PassLeast p;
  std::array<double, kLanes> lane_free{};
  std::vector<double> finish(pass.items.size());
  for (std::size_t i = 0; i < pass.items.size(); ++i) {
    const TimedItem& item = pass.items[i];
    const auto lane = static_cast<std::size_t>(item.lane);
    double start = lane_free[lane];
    if (item.after.empty() && i > 0) start = std::max(start, finish[i - 1]);
    for (std::uint16_t a : item.after) start = std::max(start, finish[a]);
    const double t = item.time.seconds();
    lane_free[lane] = finish[i] = start + t;
    p.lanes[lane] += t;
    if (item.lane == Lane::compute) p.span = finish[i];
    if (item.pass != Pass::weight_grad) p.out = finish[i];
  }
  p.busy = p.lanes[0];
  if (!pass.items.empty() && pass.items.front().lane != Lane::compute) p.span = p.out = p.busy;
  return p;
}

bool is_anchored(const Chunk& chunk) {
  const auto weak = [](const TimedPass& pass) {
    return std::any_of(pass.items.begin(), pass.items.end(),
                       [](const TimedItem& i) { return i.provenance >= Provenance::assumed; });
  };
  return std::none_of(chunk.parts.begin(), chunk.parts.end(),
                      [&](const ChunkPart& p) { return weak(p.timed->forward) || weak(p.timed->backward); });
}

bool is_layout_only(const std::string& key) {
  for (const char* prefix :
       {"schedule.", "optimizer.", "batch.global_", "overlap.grad", "overlap.param", "overlap.p2p"})
    if (key.starts_with(prefix)) return true;
  for (const char* name : {"parallel.pp", "parallel.vpp", "parallel.dp", "cluster.nodes", "cluster.memory_override",
                           "cluster.price_per_gpu_hour", "name"})
    if (key == name) return true;
  return false;
}

}  // namespace

ChunkCost chunk_cost(const Chunk& chunk, const Machine& machine) {
  ChunkCost c;
  std::array<double, kLanes> lanes{};
  for (const ChunkPart& part : chunk.steps()) {
    // Layers whose passes differ by their routing are bounded by the least of them.
    const TimedPasses& t = part.timed->least ? *part.timed->least : *part.timed;
    const PassLeast f = least(t.forward), b = least(t.backward), i = least(t.input_grad), w = least(t.weight_grad);
    c.forward += f.span, c.backward += b.span, c.input += i.span, c.weight += w.span;
    c.forward_busy += f.busy, c.backward_busy += std::min(b.busy, i.busy + w.busy);
    c.forward_out += f.out, c.input_out += std::min(b.out, i.out);
    for (std::size_t l = 1; l < lanes.size(); ++l) lanes[l] += f.lanes[l] + b.lanes[l];
    if (part.timed->offloaded > Bytes(0)) c.copies += (part.timed->offloaded / machine.gpu.host_link).seconds();
    c.saved += part.timed->saved.as_double();
    c.parameters.dense += part.parameters.dense;
    c.parameters.experts += part.parameters.experts;
    if (part.parameters.dense + part.parameters.experts > c.largest_layer.dense + c.largest_layer.experts)
      c.largest_layer = part.parameters;
  }
  for (std::size_t l = 1; l < lanes.size(); ++l) c.network = std::max(c.network, lanes[l]);
  return c;
}

CostTables::CostTables(const SearchSpace& space) : space_(space) {
  const bool usual_order = space.base().parallel.order == "tp-cp-ep-dp-pp";
  for (const SpaceAxis& axis : space.axes()) {
    bool layout_only = true;
    for (const auto& [key, text] : axis.values.front().assignments) layout_only = layout_only && is_layout_only(key);
    const bool degree = axis.key == "parallel.pp" || axis.key == "parallel.dp" || axis.key == "cluster.nodes";
    in_key_.push_back(!layout_only || axis.key == "variants" || (degree && !usual_order));
  }
}

std::size_t CostTables::key(const std::vector<int>& choice, const Scenario& scenario) {
  std::vector<int> key(choice.size() + 1, 0);
  for (std::size_t a = 0; a < choice.size(); ++a)
    if (in_key_[a]) key[a] = choice[a];
  key.back() = overlaps_expert_exchange(scenario) ? 1 : 0;
  return keys_.try_emplace(std::move(key), keys_.size()).first->second;
}

std::string CostTables::make_table(LayerTable& table, const std::map<int, std::int64_t>& wanted,
                                   MachineStore& machines) const {
  try {
    for (const auto& [chunks, index] : wanted) {
      const Scenario s = quick_scenario(space_, index);
      if (!table.layers) {
        table.machine = &machines.get(s);
        table.flops_per_token = trained_flops_per_token(s);
        table.layers = make_layer_set(s, *table.machine, &machines.moe());
      }
      ChunkTable made;
      made.chunks = std::make_shared<const std::vector<Chunk>>(cut_chunks(s, *table.layers, chunks));
      for (const Chunk& c : *made.chunks) {
        made.costs.push_back(chunk_cost(c, *table.machine));
        table.anchored = table.anchored && is_anchored(c);
      }
      table.by_chunks.emplace(chunks, std::move(made));
    }
  } catch (const ConfigError& e) {
    return e.what();
  }
  return {};
}

void CostTables::build(std::vector<Candidate>& candidates, MachineStore& machines, const TableOptions& options,
                       Reasons& reasons) {
  tables_.resize(keys_.size());
  std::vector<std::map<int, std::int64_t>> wanted(keys_.size());  // chunks -> a candidate that needs them
  std::vector<std::string> failed(keys_.size());
  for (const Candidate& c : candidates) wanted[c.table].try_emplace(c.layout.chunks, c.index);
  in_parallel(tables_.size(), options.threads, [&](std::size_t t) {
    if (!wanted[t].empty()) failed[t] = make_table(tables_[t], wanted[t], machines);
  });
  const auto verdict = [&](const Candidate& c) {
    if (!failed[c.table].empty()) return Reason::failed;
    return tables_[c.table].anchored || options.allow_assumed ? Reason::ok : Reason::unanchored;
  };
  const auto bad = [&](const Candidate& c) {
    reasons[static_cast<std::size_t>(c.index)] = verdict(c);
    return verdict(c) != Reason::ok;
  };
  // When nothing at all can be priced, the mistake is in what all share (a profile): say it instead of counting.
  if (!candidates.empty() && std::all_of(candidates.begin(), candidates.end(),
                                         [&](const Candidate& c) { return verdict(c) == Reason::failed; }))
    throw ConfigError(failed[candidates.front().table]);
  std::erase_if(candidates, bad);
  for (Candidate& c : candidates) c.chunks = &tables_[c.table].by_chunks.at(c.layout.chunks);
  cut_by_plan(candidates, machines, options.threads);
}

// A balanced partition looks at the whole plan, memory included: its chunks belong to one candidate.
void CostTables::cut_by_plan(std::vector<Candidate>& candidates, MachineStore& machines, int threads) {
  std::vector<std::pair<Candidate*, ChunkTable*>> balanced;
  for (Candidate& c : candidates) {
    const Scenario s = quick_scenario(space_, c.index);
    if (s.parallel.partition != "balanced" || !s.parallel.stage_layers.empty()) continue;
    balanced.emplace_back(&c, &own_.emplace_back());
  }
  in_parallel(balanced.size(), threads, [&](std::size_t i) {
    auto& [candidate, made] = balanced[i];
    const LayerTable& table = tables_[candidate->table];
    StepReuse reuse;
    reuse.layers = table.layers;
    reuse.moe = &machines.moe();
    try {
      Scenario s = quick_scenario(space_, candidate->index);
      made->chunks = std::make_shared<const std::vector<Chunk>>(make_step_plan(s, *table.machine, reuse).chunks);
    } catch (const ConfigError&) {
      return;  // the even cut stays; the simulation says what is wrong
    }
    for (const Chunk& c : *made->chunks) made->costs.push_back(chunk_cost(c, *table.machine));
    candidate->chunks = made;
  });
}

Scenario quick_scenario(const SearchSpace& space, std::int64_t index) {
  Scenario s = space.base();
  const std::vector<int> choice = space.choice(index);
  for (std::size_t a = 0; a < choice.size(); ++a) space.apply(a, choice[a], s);
  return s;
}

void in_parallel(std::size_t n, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < n; i = next++) work(i);
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(loop);
  loop();
  for (std::thread& t : pool) t.join();
}

}  // namespace k3sim
