#include "models/build/stage_memory.h"

#include <algorithm>

namespace k3sim {

namespace {

struct ChunkSizes {
  Bytes saved, offloaded;
  Bytes forward_peak;   // above what was alive before the forward action
  Bytes backward_peak;  // above what is alive besides this micro-batch's own kept tensors
};

ChunkSizes chunk_sizes(const Chunk& chunk) {
  ChunkSizes s;
  for (const ChunkPart& p : chunk.parts) {
    s.forward_peak = std::max(s.forward_peak, s.saved + p.timed->saved + p.timed->offloaded + p.timed->workspace);
    s.saved += p.timed->saved;
    s.offloaded += p.timed->offloaded;
  }
  Bytes left = s.saved;
  for (auto p = chunk.parts.rbegin(); p != chunk.parts.rend(); ++p) {
    s.backward_peak = std::max(s.backward_peak, left + p->timed->replayed + p->timed->workspace);
    left -= p->timed->saved;
  }
  return s;
}

class RankWalk {
 public:
  RankWalk(const StepPlan& plan, RankMemory& out) : plan_(plan), out_(out) {
    for (const Chunk& c : plan.chunks) sizes_.push_back(chunk_sizes(c));
  }

  void run(std::vector<MemoryStep>* steps = nullptr) {
    for (const Action& a : plan_.schedule.actions[static_cast<std::size_t>(out_.rank)]) {
      largest_ = Bytes();
      for_each_part(a, [&](const Action& part) { step(part); });
      if (steps != nullptr) steps->push_back({live_, std::max(largest_, live_)});
    }
  }

 private:
  const ChunkSizes& sizes(int stage) const {
    return sizes_[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
  }

  void offer(Bytes live, Bytes transient, const Action& a) {
    largest_ = std::max(largest_, live + transient);
    if (live + transient <= out_.activations + out_.transient) return;
    out_.activations = live;
    out_.transient = transient;
    out_.peak_action = to_string(a);
  }

  void step(const Action& a) {
    if (!is_plain_compute(a.kind)) return;
    const ChunkSizes& s = sizes(a.stage);
    if (a.kind == ActionKind::kForward) {
      offer(live_, s.forward_peak, a);
      live_ += s.saved;
      host_ += s.offloaded;
      out_.host_activations = std::max(out_.host_activations, host_);
      return;
    }
    const Bytes others = live_ - s.saved;
    if (yields_input_grad(a.kind)) offer(others, s.backward_peak, a);
    // Tensors are released when the last gradient that needs them is done.
    if (yields_weight_grad(a.kind)) live_ = others, host_ -= s.offloaded;
  }

  const StepPlan& plan_;
  RankMemory& out_;
  std::vector<ChunkSizes> sizes_;
  Bytes live_, host_, largest_;
};

StateShape state_shape(const StepPlan& plan, int rank) {
  StateShape shape;
  const OptimizerConfig& o = plan.scenario.optimizer;
  const auto shards = [&](GroupKind k) -> std::int64_t {
    const int all = plan.placement->group(k).ranks;
    return o.shard_group > 0 ? std::min(o.shard_group, all) : all;
  };
  shape.dense_shards = shards(GroupKind::dp);
  shape.expert_shards = shards(GroupKind::expert_dp);
  const auto larger = [](const ParameterCount& a, const ParameterCount& b) {
    return a.dense + a.experts < b.dense + b.experts ? b : a;
  };
  for (int stage : plan.schedule.stages_of_rank(rank)) {
    const Chunk& c = plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
    const ParameterCount p = c.parameters();
    shape.parameters.dense += p.dense;
    shape.parameters.experts += p.experts;
    shape.largest_chunk = larger(shape.largest_chunk, p);
    for (const ChunkPart& part : c.parts) shape.largest_layer = larger(shape.largest_layer, part.parameters);
  }
  return shape;
}

Bytes outside_allocator(const StepPlan& plan, const Machine& machine) {
  const ParallelConfig& p = plan.scenario.parallel;
  std::int64_t communicators = 1;  // the world group
  for (int degree : {p.tp, p.cp, p.ep, p.dp, p.pp})
    if (degree > 1) ++communicators;
  if (plan.scenario.cluster.gpus() == 1) communicators = 0;
  return machine.software.context_memory + communicators * machine.software.communicator_memory;
}

// Offload keeps two layers in flight in each direction; the expert dispatcher keeps one set of buffers.
Bytes staging_bytes(const StepPlan& plan, int rank) {
  Bytes largest;
  for (int stage : plan.schedule.stages_of_rank(rank))
    for (const ChunkPart& p : plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts)
      largest = std::max(largest, p.timed->offloaded);
  return 2 * largest;
}

}  // namespace

std::vector<MemoryStep> memory_steps(const StepPlan& plan, int rank) {
  RankMemory m;
  m.rank = rank;
  std::vector<MemoryStep> steps;
  RankWalk(plan, m).run(&steps);
  return steps;
}

std::vector<RankMemory> memory_per_rank(const StepPlan& plan, const Machine& machine) {
  std::vector<RankMemory> out;
  const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
  for (int rank = 0; rank < plan.schedule.ranks; ++rank) {
    RankMemory m;
    m.rank = rank;
    m.states = state_bytes(state_shape(plan, rank), plan.scenario.optimizer);
    RankWalk(plan, m).run();
    m.staging = staging_bytes(plan, rank);
    m.outside = outside_allocator(plan, machine);
    m.allocated = m.states.gpu() + m.activations + m.transient + m.staging + machine.software.workspace_memory;
    m.reserved = Bytes::ceil(m.allocated.as_double() * (1.0 + machine.software.fragmentation));
    const Bytes total = m.reserved + m.outside;
    m.short_by = total > capacity ? total - capacity : Bytes(0);
    out.push_back(m);
  }
  return out;
}

}  // namespace k3sim
