// See fit.h. Source: issue "What-if" (fit question first); peers.md (d) 5.
#include "tools/planner/fit.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/error.h"
#include "tools/planner/candidates.h"
#include "tools/planner/explain.h"

namespace k3sim {

namespace {

void name_binding(FitAnswer& a) {
  const RankMemory* worst = &a.memory.front();
  for (const RankMemory& m : a.memory)
    if (m.reserved + m.outside > worst->reserved + worst->outside) worst = &m;
  for (const auto& [name, bytes] : memory_terms(*worst))
    if (a.binding.empty() || bytes.gibibytes() > a.binding_gib) a.binding = name, a.binding_gib = bytes.gibibytes();
}

// The axes that say how parameters are cut; others leave the bytes of the states alone.
bool cuts_parameters(const SpaceAxis& axis) {
  for (const auto& [key, text] : axis.values.front().assignments)
    for (const char* prefix :
         {"activation.", "batch.", "optimizer.", "schedule.", "overlap.", "cluster.", "memory.", "network.",
          "moe.dispatcher", "moe.routing", "parallel.cp", "parallel.pp", "parallel.vpp", "parallel.dp"})
      if (key.starts_with(prefix)) return false;
  return true;
}

class FitSearch {
 public:
  FitSearch(const SearchSpace& space, MachineStore& machines, const FitOptions& options, std::string gpu)
      : space_(space), machines_(machines), options_(options), gpu_(std::move(gpu)), keys_(space) {
    for (const SpaceAxis& axis : space_.axes()) cuts_.push_back(cuts_parameters(axis));
    Scenario s = space_.base();
    for (std::int64_t i = 0; i < space_.size(); ++i) {
      const std::vector<int> choice = set(i, s);
      if (s.cluster.gpu == gpu_) layouts_.push_back({i, node_step(s)});
    }
  }

  FitPlace find() {
    for (int nodes = 1; nodes <= options_.most_nodes; ++nodes)
      if (const FitPlace place = try_nodes(nodes); place.nodes > 0) return place;
    return {};
  }

  FitAnswer answer(const FitPlace& place) {
    FitAnswer answer;
    answer.gpu = gpu_;
    answer.asked = space_.base().batch;
    answer.nodes = place.nodes;
    answer.index = place.index;
    if (answer.nodes == 0) return answer;
    Scenario s = space_.base();
    const std::vector<int> choice = set(place.index, s);
    prepare(s, place.nodes);
    FitTrial t = measure(choice, s, 1);
    answer.layout = layout_text(space_, place.index);
    answer.scenario = std::move(t.scenario);
    answer.scenario.text = space_.scenario_text(place.index);
    answer.memory = std::move(t.memory);
    answer.capacity = capacity(answer.scenario);
    name_binding(answer);
    if (options_.knobs) try_knobs(answer, machines_);
    return answer;
  }

 private:
  struct Unit {
    std::int64_t index;
    int step;  // of the number of nodes
  };
  struct Shared {
    std::shared_ptr<const LayerSet> layers;
    std::map<int, ChunkTable> by_chunks;
  };
  using Key = std::vector<int>;

  std::vector<int> set(std::int64_t index, Scenario& s) const {
    std::vector<int> choice = space_.choice(index);
    for (std::size_t a = 0; a < choice.size(); ++a) space_.apply(a, choice[a], s);
    return choice;
  }

  FitPlace try_nodes(int nodes) {
    std::vector<std::pair<Bytes, std::int64_t>> order;
    Scenario s = space_.base();
    for (const Unit& u : layouts_) {
      if (nodes % u.step != 0) continue;
      const std::vector<int> choice = set(u.index, s);
      prepare(s, nodes);
      Layout layout;
      if (rules(s).check(s, layout, options_.evaluate.tp_across_nodes) != Reason::ok) continue;
      const Bytes least = bounded(s) ? least_states(choice, s, layout) : Bytes(0);
      if (least <= capacity(s)) order.emplace_back(least, u.index);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [bound, index] : order) {
      const std::vector<int> choice = set(index, s);
      prepare(s, nodes);
      FitTrial t = measure(choice, s, 0);
      if (!t.valid || t.short_by > Bytes(0)) continue;
      t = measure(choice, s, 1);
      if (!t.valid || t.short_by > Bytes(0)) continue;
      return {nodes, index};
    }
    return {};
  }

  static void prepare(Scenario& s, int nodes) {
    s.cluster.nodes = nodes;
    s.parallel.dp = 0;
    set_fit_batch(s);
  }

  // Cuts by balance look at times and memory of the plan: no bound before it is made.
  static bool bounded(const Scenario& s) { return s.parallel.partition == "even" || !s.parallel.stage_layers.empty(); }

  Bytes capacity(const Scenario& s) { return s.cluster.memory_override.value_or(machines_.get(s).gpu.usable_memory); }

  const LayoutRules& rules(const Scenario& s) { return rules_.try_emplace(s.model.name, s.model).first->second; }

  const StageMap& map_of(const Scenario& s, const Layout& l) { return maps_.get(s, l); }

  // Weights, gradients and optimizer states alone.
  Bytes least_states(const std::vector<int>& choice, const Scenario& s, const Layout& l) {
    Key key(choice.size() + 1, 0);
    for (std::size_t a = 0; a < choice.size(); ++a)
      if (cuts_[a]) key[a] = choice[a];
    key.back() = l.chunks;
    const auto [it, fresh] = states_.try_emplace(std::move(key));
    if (fresh) {
      const ChunkTable* own = share(choice, s, l.chunks);
      if (own) it->second = own->costs;
      for (ChunkCost& c : it->second) c.saved = 0;
    }
    return it->second.empty() ? Bytes(0) : least_memory(s, map_of(s, l), l, it->second);
  }

  FitTrial measure(const std::vector<int>& choice, const Scenario& s, int emulated_ranks) {
    StepReuse reuse;
    if (bounded(s)) {
      Layout l;
      rules(s).check(s, l, true);
      const ChunkTable* own = share(choice, s, l.chunks);
      if (!own || least_memory(s, map_of(s, l), l, own->costs) > capacity(s)) return {};
      reuse.layers = shared_[keys_.key(choice, s)].layers;
      reuse.chunks = own->chunks;
    }
    return fit_trial(s, machines_, reuse, emulated_ranks);
  }

  const ChunkTable* share(const std::vector<int>& choice, const Scenario& s, int chunks) {
    Shared& shared = shared_[keys_.key(choice, s)];
    if (const auto found = shared.by_chunks.find(chunks); found != shared.by_chunks.end())
      return found->second.chunks ? &found->second : nullptr;
    ChunkTable& made = shared.by_chunks[chunks];
    try {
      const Machine& machine = machines_.get(s);
      if (!shared.layers) shared.layers = make_layer_set(s, machine, &machines_.moe());
      made.chunks = std::make_shared<const std::vector<Chunk>>(cut_chunks(s, *shared.layers, chunks));
      for (const Chunk& c : *made.chunks) made.costs.push_back(chunk_cost(c, machine));
    } catch (const ConfigError&) {
      return nullptr;
    }
    return &made;
  }

  const SearchSpace& space_;
  MachineStore& machines_;
  const FitOptions& options_;
  std::string gpu_;
  CostTables keys_;
  std::vector<bool> cuts_;  // axes
  std::vector<Unit> layouts_;
  std::map<std::string, LayoutRules> rules_;
  StageMaps maps_;
  std::map<std::size_t, Shared> shared_;
  std::map<Key, std::vector<ChunkCost>> states_;
};

}  // namespace

std::vector<std::pair<const char*, Bytes>> memory_terms(const RankMemory& m) {
  return {
      {"weights", m.states.weights},       {"gradients", m.states.gradients},  {"optimizer states", m.states.optimizer},
      {"kept activations", m.activations}, {"transient tensors", m.transient}, {"staging buffers", m.staging}};
}

FitTrial fit_trial(Scenario s, MachineStore& machines, const StepReuse& reuse, int emulated_ranks) {
  FitTrial t;
  const Machine& machine = machines.get(s);
  MemoryOptions memory;
  memory.emulated_ranks = emulated_ranks;
  try {
    StepReuse all = reuse;
    all.moe = &machines.moe();
    t.memory = memory_per_rank(make_step_plan(s, machine, all), machine, memory);
  } catch (const ConfigError&) {
    return t;
  }
  for (const RankMemory& m : t.memory) {
    t.worst = std::max(t.worst, m.reserved + m.outside);
    t.short_by = std::max(t.short_by, m.short_by);
    const Bytes host = m.host() * s.cluster.gpus_per_node;
    if (machine.host.memory > Bytes(0) && host > machine.host.memory)
      t.short_by = std::max(t.short_by, host - machine.host.memory);
  }
  t.valid = true;
  t.scenario = std::move(s);
  return t;
}

void set_fit_batch(Scenario& s) {
  const ParallelConfig& p = s.parallel;
  const std::int64_t dp = std::max<std::int64_t>(1, s.cluster.gpus() / (std::int64_t{p.tp} * p.pp * p.cp));
  s.batch.global_tokens = 0;
  s.batch.global_sequences = s.batch.micro_batch * dp * 2 * p.pp;
}

int node_step(const Scenario& s) {
  const ParallelConfig& p = s.parallel;
  const std::int64_t ranks = std::lcm(std::int64_t{p.tp} * p.cp, std::int64_t{p.ep} * p.etp) * p.pp;
  return static_cast<int>(std::lcm(ranks, std::int64_t{s.cluster.gpus_per_node}) / s.cluster.gpus_per_node);
}

namespace {

std::vector<std::string> gpus_of(const SearchSpace& space) {
  std::vector<std::string> gpus{space.base().cluster.gpu};
  for (const SpaceAxis& axis : space.axes())
    if (axis.key == "cluster.gpu") {
      gpus.clear();
      for (const SpaceValue& v : axis.values) gpus.push_back(v.text);
    }
  return gpus;
}

}  // namespace

std::vector<std::vector<FitAnswer>> smallest_fits(const std::vector<SearchSpace>& spaces, MachineStore& machines,
                                                  const FitOptions& options) {
  std::vector<std::pair<std::size_t, std::string>> all;
  for (std::size_t i = 0; i < spaces.size(); ++i)
    for (const std::string& gpu : gpus_of(spaces[i])) all.emplace_back(i, gpu);
  ThreadShare own(1);
  WorkShare& share = options.share ? *options.share : own;
  const auto places = share.results<FitPlace>(all.size(), [&](std::size_t i) {
    return FitSearch(spaces[all[i].first], machines, options, all[i].second).find();
  });
  std::vector<std::vector<FitAnswer>> out(spaces.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [space, gpu] = all[i];
    out[space].push_back(FitSearch(spaces[space], machines, options, gpu).answer(places[i]));
  }
  return out;
}

std::vector<FitAnswer> smallest_fit(const SearchSpace& space, MachineStore& machines, const FitOptions& options) {
  return smallest_fits({space}, machines, options).front();
}

}  // namespace k3sim
