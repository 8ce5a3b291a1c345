// See memory_log_states.h. Source: the upstream files named there.
#include "models/build/memory_log_states.h"

#include <algorithm>

namespace k3sim {

StateShape state_shape(const StepPlan& plan, int rank) {
  StateShape shape;
  const OptimizerConfig& o = plan.scenario.optimizer;
  const auto shards = [&](GroupKind k) -> std::int64_t {
    const int all = plan.placement->group(k).ranks;
    return o.shard_group > 0 ? std::min(o.shard_group, all) : all;
  };
  shape.dense_shards = shards(GroupKind::dp);
  shape.expert_shards = shards(GroupKind::expert_dp);
  shape.by_chunk = reduces_by_chunk(plan);
  shape.gathered = o.zero >= 3 && !o.reshard_after_forward && plan.schedule.ranks > 1;
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

RankStates::RankStates(const StepPlan& plan, const SoftwareProfile& software, int rank, MemorySink& sink)
    : plan_(plan),
      optimizer_(plan.scenario.optimizer),
      software_(software),
      sink_(sink),
      stages_(plan.schedule.stages_of_rank(rank)),
      shape_(state_shape(plan, rank)),
      fsdp_(optimizer_.zero >= 3 && !shape_.gathered) {
  shape_.reduce_bytes = software.reduce_bytes;
  for (int s : stages_)
    for (std::size_t i = 0; i < chunk(s).parts.size(); ++i)
      if (is_root(s, i)) root_.parameters += chunk(s).parts[i].parameters.dense;
}

const Chunk& RankStates::chunk(int stage) const {
  return plan_.chunks[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
}

bool RankStates::is_root(int stage, std::size_t part) const {
  const ChunkPart::Kind k = chunk(stage).parts[part].kind;
  return k == ChunkPart::Kind::embedding || k == ChunkPart::Kind::head;
}

RankStates::Unit& RankStates::unit(int stage, std::size_t part) {
  if (is_root(stage, part)) return root_;
  Unit& u = units_[{stage, static_cast<int>(part)}];
  const ParameterCount& p = chunk(stage).parts[part].parameters;
  u.parameters = p.dense + p.experts;
  return u;
}

std::int64_t RankStates::sharded(const ParameterCount& p) const {
  return (p.dense + shape_.dense_shards - 1) / shape_.dense_shards +
         (p.experts + shape_.expert_shards - 1) / shape_.expert_shards;
}

void RankStates::contiguous(std::int64_t parameters, Bytes each, MemoryCategory category, const char* name, int stage) {
  const Bytes bytes = parameters * each;
  if (bytes.count() > 0)
    sink_.alloc(bytes, category, {name, static_cast<std::int16_t>(stage), -1, -1, ActionKind::kIdle});
}

std::vector<ParameterCount> RankStates::blocks(int stage) const {
  const bool split = plan_.scenario.parallel.vocabulary_stages && plan_.schedule.ranks > 1;
  std::vector<ParameterCount> out;
  for (std::size_t i = 0; i < chunk(stage).parts.size(); ++i)
    if (!split || !is_root(stage, i)) out.push_back(chunk(stage).parts[i].parameters);
  if (split && stage == stages_.front()) {
    const std::int64_t tables = plan_.layers->embedding_parameters().dense + plan_.layers->head_parameters().dense;
    out.push_back({.dense = (tables + plan_.schedule.ranks - 1) / plan_.schedule.ranks});
  }
  return out;
}

void RankStates::weights(const ParameterCount& p, int stage) {
  const std::int64_t all = p.dense + p.experts, shard = sharded(p);
  if (shape_.gathered) {
    contiguous(shard, optimizer_.parameter_bytes, MemoryCategory::weights, "weights", stage);
    contiguous(gathered_weights(p, shape_).count(), Bytes(1), MemoryCategory::gathered, "gathered_parameters", stage);
    return;
  }
  // FP32 parameters without ZeRO-3 are FSDP shards of which the whole BF16 copy stays gathered (pipeline FSDP).
  const bool gathered = !fsdp_ && optimizer_.zero >= 1 && optimizer_.parameter_bytes.count() > 2;
  contiguous(fsdp_ || gathered ? shard : all, optimizer_.parameter_bytes, MemoryCategory::weights, "weights", stage);
  if (gathered) {
    contiguous(all, Bytes(2), MemoryCategory::gathered, "gathered_parameters", stage);
    contiguous(shard, optimizer_.gradient_bytes, MemoryCategory::gradients, "gradient_shard", stage);
  }
  if (software_.ddp_buckets && plan_.scenario.parallel.dp > 1)
    contiguous(all, Bytes(2), MemoryCategory::gradients, "ddp_bucket", stage);
}

void RankStates::start(bool with_moments) {
  const bool by_chunk = reduces_by_chunk(plan_), host_gradients = optimizer_.gradient_shards == "cpu";
  for (int s : stages_) {
    ParameterCount p;
    for (const ParameterCount& block : blocks(s)) {
      weights(block, s);
      p.dense += block.dense;
      p.experts += block.experts;
    }
    if (host_gradients) continue;
    if (shape_.gathered) {
      contiguous(whole_gradients(p, shape_, optimizer_).count(), Bytes(1), MemoryCategory::gradients,
                 "unsharded_gradients", s);
      continue;
    }
    if (optimizer_.zero >= 2) {
      contiguous(sharded(p), optimizer_.gradient_bytes, MemoryCategory::gradients, "gradient_shard", s);
      continue;
    }
    contiguous(p.dense, optimizer_.gradient_bytes, MemoryCategory::gradients, "gradient_buffer", s);
    contiguous(p.experts, optimizer_.gradient_bytes, MemoryCategory::gradients, "expert_gradient_buffer", s);
  }
  vision_encoder();
  const std::int64_t chunk_parameters = shape_.largest_chunk.dense + shape_.largest_chunk.experts;
  for (int i = 0; by_chunk && i < 2; ++i)
    contiguous(chunk_parameters, optimizer_.gradient_bytes, MemoryCategory::gradients, "chunk_gradient_buffer", -1);
  if (software_.dummy_weight_gradients)
    contiguous(shape_.largest_layer.dense, Bytes(2), MemoryCategory::weight_gradients, "placeholder_gradient", -1);
  moments(true);
  if (with_moments) moments(false);
}

// Replicated on every rank, or on the first stage's ranks; sharded like dense parameters over all that hold it.
void RankStates::vision_encoder() {
  const bool first_only = plan_.scenario.vision.placement == "stage0";
  if (!plan_.vision.present() || (first_only && stages_.front() != 0)) return;
  const std::int64_t all = plan_.vision.parameters;
  const std::int64_t ranks = first_only ? shape_.dense_shards : plan_.placement->world();
  const std::int64_t shard = optimizer_.zero >= 1 ? (all + ranks - 1) / ranks : all;
  contiguous(all, optimizer_.parameter_bytes, MemoryCategory::weights, "vision_weights", stages_.front());
  contiguous(all, optimizer_.gradient_bytes, MemoryCategory::gradients, "vision_gradients", stages_.front());
  if (optimizer_.states == "gpu" && optimizer_.name != "none")
    contiguous(shard, optimizer_.state_bytes, MemoryCategory::optimizer, "vision_states", stages_.front());
}

// One FP32 tensor per layer and kind of state; the first is the master copy, made before the first step.
void RankStates::moments(bool first) {
  if (optimizer_.states == "cpu" || optimizer_.name == "none") return;
  const std::int64_t kinds = optimizer_.state_bytes.count() / 4, rest = optimizer_.state_bytes.count() % 4;
  const bool master = optimizer_.parameter_bytes.count() < 4;
  for (int s : stages_)
    for (const ParameterCount& block : blocks(s)) {
      const std::int64_t held = optimizer_.zero >= 1 ? sharded(block) : block.dense + block.experts;
      for (std::int64_t k = 0; k < kinds; ++k) {
        const bool early = k == 0 && master;
        if (early == first) contiguous(held, Bytes(4), MemoryCategory::optimizer, early ? "master" : "moment", s);
      }
      if (!first && rest > 0) contiguous(held, Bytes(rest), MemoryCategory::optimizer, "moment", s);
    }
}

void RankStates::gather(Unit& u, int stage, std::size_t part) {
  if (u.gathered.bytes.count() > 0 || u.parameters == 0) return;
  u.gathered = sink_.alloc(Bytes(2 * u.parameters), MemoryCategory::gathered,
                           {"gathered_parameters", static_cast<std::int16_t>(stage), static_cast<std::int16_t>(part),
                            -1, ActionKind::kUnshard});
}

void RankStates::drop(MemoryHandle& h) {
  if (h.bytes.count() > 0) sink_.free(h);
  h = {};
}

void RankStates::before_forward(int stage, std::size_t part) {
  if (!fsdp_) return;
  gather(unit(stage, part), stage, part);
  if (part + 1 < chunk(stage).parts.size()) gather(unit(stage, part + 1), stage, part + 1);
}

void RankStates::after_forward(int stage, std::size_t part) {
  if (!fsdp_ || !optimizer_.reshard_after_forward || is_root(stage, part)) return;
  drop(unit(stage, part).gathered);
}

void RankStates::before_backward(int stage, std::size_t part) {
  const ChunkPart& p = chunk(stage).parts[part];
  const bool embedding = p.kind == ChunkPart::Kind::embedding;
  if (!fsdp_) {
    if (!embedding || !software_.dense_embedding_gradient) return;
    MemoryHandle h = sink_.alloc(p.parameters.dense * optimizer_.parameter_bytes, MemoryCategory::weight_gradients,
                                 {"embedding_grad", static_cast<std::int16_t>(stage), static_cast<std::int16_t>(part),
                                  -1, ActionKind::kBackward});
    sink_.free(h);
    return;
  }
  Unit& u = unit(stage, part);
  gather(u, stage, part);
  if (part > 0) gather(unit(stage, part - 1), stage, part - 1);
  if (p.parameters.dense + p.parameters.experts == 0) return;
  const MemoryPlace place{"unsharded_grad", static_cast<std::int16_t>(stage), static_cast<std::int16_t>(part), -1,
                          ActionKind::kBackward};
  // The root group's gradients appear with the head's and wait for the embedding's.
  if (u.gradient.bytes.count() == 0)
    u.gradient = sink_.alloc(Bytes(2 * u.parameters), MemoryCategory::weight_gradients, place);
}

void RankStates::after_backward(int stage, std::size_t part) {
  if (!fsdp_) return;
  Unit& u = unit(stage, part);
  const bool last_of_root = chunk(stage).parts[part].kind == ChunkPart::Kind::embedding || part == 0;
  if (is_root(stage, part) && !last_of_root) return;
  if (!is_root(stage, part)) drop(u.gathered);
  drop(reducing_);
  reducing_ = sink_.alloc(u.parameters * software_.reduce_bytes, MemoryCategory::exchange,
                          {"reduce_scatter_input", static_cast<std::int16_t>(stage), static_cast<std::int16_t>(part),
                           -1, ActionKind::kReduceGrad});
  drop(u.gradient);
  if (!last_of_root) return;
  drop(u.gathered);
  drop(root_.gathered);
  drop(reducing_);
}

void RankStates::optimizer_step(bool first) {
  const std::int64_t each = (software_.step_gradient_copy ? 4 : 0) + software_.step_temporaries.count();
  std::vector<MemoryHandle> copies;
  for (int s : stages_)
    for (const ParameterCount& block : blocks(s)) {
      const std::int64_t held = optimizer_.zero >= 1 ? sharded(block) : block.dense + block.experts;
      if (held * each > 0)
        copies.push_back(sink_.alloc(Bytes(held * each), MemoryCategory::optimizer,
                                     {"step_temporary", static_cast<std::int16_t>(s), -1, -1, ActionKind::kIdle}));
    }
  if (first) moments(false);
  for (const MemoryHandle& h : copies) sink_.free(h);
}

}  // namespace k3sim
