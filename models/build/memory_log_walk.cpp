// See memory_log_walk.h.
// Source: Megatron-LM core/pipeline_parallel/schedules.py; PyTorch FSDP2; zero-bubble weight-gradient store.
#include "models/build/memory_log_walk.h"
#include "models/build/attnres_flow.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "models/build/memory_log_states.h"
#include "models/build/remote_pool.h"

namespace k3sim {

namespace {

struct PartState {
  LayerSlot slot;
  bool away = false;  // its stored tensors are in host memory
};

// What one micro-batch holds on one stage between its passes.
struct Flight {
  std::vector<PartState> parts;
  MemoryHandle bank;      // stored block rows that came with the input
  MemoryHandle gradient;  // of the stage's input, when the stage before is on the same rank
};

class Walk {
 public:
  Walk(const StepPlan& plan, const SoftwareProfile& software, int rank, const MemoryWalkOptions& options,
       MemorySink& sink)
      : plan_(plan),
        boundaries_(stage_boundaries(plan)),
        options_(options),
        sink_(sink),
        states_(plan, software, rank, sink),
        rank_(rank),
        torch_pipelining_(software.torch_pipelining && plan.schedule.ranks > 1) {
    for (const Action& a : plan.schedule.actions[static_cast<std::size_t>(rank)])
      per_layer_weights_ = per_layer_weights_ || (a.flags & kFlagRoutedWeights) != 0;
    const MoeEffects& e = plan.layers->moe();
    if (e.draws && e.dynamic_shapes) fullest_ = fullest_rank(*e.draws);
  }

  void run() {
    states_.start(options_.steps == 1);
    receive_buffers();
    const Bytes pool = partner_pool(plan_, rank_);
    if (pool > Bytes(0)) sink_.alloc(pool, MemoryCategory::remote_pool, {"remote_pool"});
    for (int i = 0; i < options_.steps; ++i) {
      for (const MemoryHandle& h : held_outputs_) sink_.free(h);
      held_outputs_.clear();
      for (const Action& a : plan_.schedule.actions[static_cast<std::size_t>(rank_)]) {
        for_each_part(a, [&](const Action& part) { action(part); });
        sink_.action_done(a);
      }
      drain_offload();
      states_.optimizer_step(i == 0 && options_.steps > 1);
    }
  }

 private:
  const Chunk& chunk(int stage) const {
    return plan_.chunks[static_cast<std::size_t>(plan_.schedule.model_stage(stage))];
  }
  // Parts that run on the stage. A head split over the stages leaves logits / stages everywhere, which is left out.
  std::size_t parts_of(int stage) const {
    const std::vector<ChunkPart>& parts = chunk(stage).parts;
    const bool split = plan_.scenario.parallel.vocabulary_stages && plan_.schedule.ranks > 1 && !parts.empty() &&
                       parts.back().kind == ChunkPart::Kind::head;
    return parts.size() - (split ? 1 : 0);
  }
  Flight& flight(const Action& a) { return flights_[{a.stage, a.microbatch}]; }
  bool here(int stage) const {
    return stage >= 0 && stage < plan_.schedule.stages &&
           plan_.schedule.rank_of_stage[static_cast<std::size_t>(stage)] == rank_;
  }

  void action(const Action& a) {
    if (a.kind == ActionKind::kOffload || a.kind == ActionKind::kOnload) return lend(a);
    const bool vision = a.kind == ActionKind::kVisionForward || a.kind == ActionKind::kVisionBackward;
    if (!is_plain_compute(a.kind) && !vision) return;
    const int first = plan_.schedule.first_microbatch(a.stage);
    if (options_.microbatch_limit > 0 && a.microbatch - first >= options_.microbatch_limit) return;
    if (vision) return encoder(a);
    if (a.kind == ActionKind::kForward) return forward(a);
    if (yields_input_grad(a.kind)) return backward(a);
    weight_gradient(a);
  }

  MemoryPlace place(const Action& a, std::size_t part, const char* name = "") const {
    return {name, a.stage, static_cast<std::int16_t>(part), a.microbatch, a.kind};
  }

  std::vector<int> layers_with_experts() const {
    std::vector<int> out;
    for (int stage : plan_.schedule.stages_of_rank(rank_))
      for (const ChunkPart& part : chunk(stage).parts)
        if (part.timed->moe) out.push_back(part.layer);
    return out;
  }

  // Micro-batches whose tensors this rank holds at once, at most.
  int microbatches_in_flight() const {
    int alive = 0, most = 0;
    for (const Action& a : plan_.schedule.actions[static_cast<std::size_t>(rank_)])
      for_each_part(a, [&](const Action& part) {
        if (part.kind == ActionKind::kForward) most = std::max(most, ++alive);
        if (yields_input_grad(part.kind)) --alive;
      });
    const auto stages = static_cast<int>(plan_.schedule.stages_of_rank(rank_).size());
    return std::max(1, (most + stages - 1) / std::max(1, stages));
  }

  // A layer has few draws of its own, which repeat. The allocator would see the same sizes again and again: where
  // layers follow one law, later micro-batches take the draws of the other layers in turn.
  const MoeDraw& draw_of(const MoeDraws& draws, int layer, int microbatch) const {
    const RoutingConfig& r = plan_.scenario.moe.routing;
    const int turn = microbatch / draws.micro_batches();
    if (turn == 0 || r.source == "file" || r.layer_sigma > 0) return draws.at(layer, microbatch);
    const std::vector<int>& layers = draws.layers();
    const auto own = static_cast<std::size_t>(std::lower_bound(layers.begin(), layers.end(), layer) - layers.begin());
    return draws.at(layers[(own + static_cast<std::size_t>(turn)) % layers.size()], microbatch);
  }

  // The expert-parallel rank whose memory is the peak of this pipeline rank: most rows in its layers over as many
  // successive micro-batches as are held at once.
  std::size_t fullest_rank(const MoeDraws& draws) const {
    const std::vector<int> layers = layers_with_experts();
    const int all = static_cast<int>(plan_.microbatches), window = std::min(all, microbatches_in_flight());
    std::size_t fullest = 0;
    std::int64_t most = -1;
    for (std::size_t r = 0; r < draws.draws.front().ranks.size(); ++r) {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(all), 0);
      for (int m = 0; m < all; ++m)
        for (const int layer : layers) rows[static_cast<std::size_t>(m)] += draw_of(draws, layer, m).ranks[r].rows;
      for (int first = 0; first < all; ++first) {
        std::int64_t held = 0;
        for (int i = 0; i < window; ++i) held += rows[static_cast<std::size_t>((first + i) % all)];
        if (held > most) most = held, fullest = r;
      }
    }
    return fullest;
  }

  // Rows of that rank in this layer and micro-batch, over those that the layer's events were made for: what the
  // allocator sees where shapes follow the routing.
  double row_factor(const Action& a, const ChunkPart& part) const {
    if (!fullest_ || !part.timed->moe) return 1.0;
    const MoeEffects& e = plan_.layers->moe();
    return draw_of(*e.draws, part.layer, a.microbatch).ranks[*fullest_].row_ratio / e.row_ratio;
  }

  MemoryHandle run_part(const Action& a, std::size_t i, LayerPass pass, const MemoryHandle& incoming, Flight& f) {
    const ChunkPart& part = chunk(a.stage).parts[i];
    return sink_.run({*part.timed->memory, pass, f.parts[i].slot, incoming, place(a, i), row_factor(a, part)});
  }

  // The stage's input: a receive buffer, or the output of the stage before when that is on this rank.
  MemoryHandle stage_input(const Action& a, Flight& f) {
    const Chunk& c = chunk(a.stage);
    if (plan_.schedule.is_first(a.stage) || c.parts.empty()) return {};
    const Bytes row = c.parts.front().timed->memory->tensors[kLayerInput].bytes;
    const Bytes rows = boundaries_.held_rows[static_cast<std::size_t>(a.stage)];
    if (rows > Bytes(0)) f.bank = sink_.alloc(rows, MemoryCategory::activations, place(a, 0, "block_rows"));
    if (here(a.stage - 1)) {
      const auto it = outputs_.find({a.stage - 1, a.microbatch});
      if (it != outputs_.end()) {
        const MemoryHandle h = it->second;
        outputs_.erase(it);
        return h;
      }
    }
    return sink_.alloc(row, MemoryCategory::activations, place(a, 0, "stage.input"));
  }

  // Forward holds one layer's tensors and leaves the image embeddings; backward rebuilds all layers, piece by piece.
  void encoder(const Action& a) {
    const VisionPlan& v = plan_.vision;
    const bool forward = a.kind == ActionKind::kVisionForward;
    const std::int64_t layers = forward ? plan_.scenario.model.vision.layers : 1;
    const Bytes all = v.microbatches[static_cast<std::size_t>(a.microbatch)].at_once * v.activations;
    sink_.free(sink_.alloc(all.share(layers), MemoryCategory::activations, place(a, 0, "vision.activations")));
    MemoryHandle& out = images_[a.microbatch];
    if (forward)
      out = sink_.alloc(v.embeddings, MemoryCategory::activations, place(a, 0, "vision.embeddings"));
    else if (out.bytes.count() > 0)
      sink_.free(out), out = {};
  }

  void forward(const Action& a) {
    const Chunk& c = chunk(a.stage);
    Flight& f = flight(a);
    f.parts.resize(c.parts.size());
    MemoryHandle h = stage_input(a, f);
    for (std::size_t i = 0; i < parts_of(a.stage); ++i) {
      states_.before_forward(a.stage, i);
      h = run_part(a, i, LayerPass::forward, h, f);
      send_away(a, i, f);
      states_.after_forward(a.stage, i);
    }
    if (!plan_.schedule.is_last(a.stage) && here(a.stage + 1))
      outputs_[{a.stage, a.microbatch}] = h;
    else if (torch_pipelining_ && !plan_.schedule.is_last(a.stage))
      held_outputs_.push_back(h);
    else
      sink_.free(h);
  }

  // torch.distributed.pipelining makes a stage's receive buffers once, one per micro-batch and direction. Those that a
  // micro-batch in flight owns come from stage_input and stage_gradient: here are the rest, a gradient's but one.
  void receive_buffers() {
    if (!torch_pipelining_) return;
    for (int stage : plan_.schedule.stages_of_rank(rank_)) {
      if (chunk(stage).parts.empty() || plan_.schedule.is_last(stage) || here(stage + 1)) continue;
      const Bytes row = chunk(stage).parts[parts_of(stage) - 1].timed->memory->tensors[kOutputGradient].bytes;
      for (std::int64_t i = 1; i < plan_.microbatches && row > Bytes(0); ++i)
        sink_.alloc(row, MemoryCategory::activation_gradients,
                    {"receive_buffer", static_cast<std::int16_t>(stage), -1, -1, ActionKind::kIdle});
    }
  }

  void send_away(const Action& a, std::size_t i, Flight& f) {
    drain_offload();
    const LayerEvents& layer = *chunk(a.stage).parts[i].timed->memory;
    if (layer.stored.empty()) return;
    f.parts[i].away = true;
    pending_ = [this, &layer, &f, p = place(a, i, "offload"), i, rows = row_factor(a, chunk(a.stage).parts[i])] {
      sink_.store(layer, f.parts[i].slot, true, p, rows);
    };
  }

  // The schedule moves a whole micro-batch of a stage away or back.
  void lend(const Action& a) {
    if (options_.microbatch_limit > 0 &&
        a.microbatch - plan_.schedule.first_microbatch(a.stage) >= options_.microbatch_limit)
      return;
    drain_offload();
    Flight& f = flight(a);
    for (std::size_t i = 0; i < f.parts.size() && i < parts_of(a.stage); ++i)
      sink_.lend(*chunk(a.stage).parts[i].timed->memory, f.parts[i].slot,
                 {a.kind == ActionKind::kOffload, a.other_stage < 0, f.parts[i].away}, place(a, i, "lent"));
  }

  void drain_offload() {
    if (!pending_) return;
    pending_();
    pending_ = nullptr;
  }

  void bring_back(const Action& a, std::size_t i, Flight& f) {
    if (!f.parts[i].away) return;
    f.parts[i].away = false;
    const ChunkPart& part = chunk(a.stage).parts[i];
    sink_.store(*part.timed->memory, f.parts[i].slot, false, place(a, i, "onload"), row_factor(a, part));
  }

  // Gradient of the stage's output: received, or handed over by the stage behind when that is on this rank.
  MemoryHandle stage_gradient(const Action& a) {
    const Chunk& c = chunk(a.stage);
    const std::size_t parts = parts_of(a.stage);
    if (parts == 0) return {};
    if (here(a.stage + 1) && !plan_.schedule.is_last(a.stage)) {
      const auto it = flights_.find({a.stage + 1, a.microbatch});
      if (it != flights_.end() && it->second.gradient.bytes.count() > 0) {
        const MemoryHandle h = it->second.gradient;
        it->second.gradient = {};
        return h;
      }
    }
    const Bytes bytes = c.parts[parts - 1].timed->memory->tensors[kOutputGradient].bytes;
    if (bytes.count() == 0) return {};
    return sink_.alloc(bytes, MemoryCategory::activation_gradients, place(a, parts - 1, "stage.output_grad"));
  }

  void backward(const Action& a) {
    drain_offload();
    const Chunk& c = chunk(a.stage);
    Flight& f = flight(a);
    if (f.parts.empty() && !c.parts.empty()) return;
    MemoryHandle g = stage_gradient(a);
    const bool whole = a.kind == ActionKind::kBackward || per_layer_weights_;
    const LayerPass pass = whole ? LayerPass::backward : LayerPass::input_grad;
    for (std::size_t i = parts_of(a.stage); i-- > 0;) {
      bring_back(a, i, f);
      if (i > 0) bring_back(a, i - 1, f);
      states_.before_backward(a.stage, i);
      g = run_part(a, i, pass, g, f);
      states_.after_backward(a.stage, i);
    }
    if (f.bank.bytes.count() > 0) sink_.free(f.bank);
    f.bank = {};
    if (!plan_.schedule.is_first(a.stage) && here(a.stage - 1))
      f.gradient = g;
    else if (g.bytes.count() > 0)
      sink_.free(g);
    if (whole) f.parts.clear();
  }

  void weight_gradient(const Action& a) {
    Flight& f = flight(a);
    if (f.parts.empty()) return;
    for (std::size_t i = parts_of(a.stage); i-- > 0;) run_part(a, i, LayerPass::weight_grad, {}, f);
    f.parts.clear();
  }

  const StepPlan& plan_;
  StageBoundaries boundaries_;
  const MemoryWalkOptions& options_;
  MemorySink& sink_;
  RankStates states_;
  int rank_;
  bool torch_pipelining_;
  std::vector<MemoryHandle> held_outputs_;  // of this step, sent long ago
  std::optional<std::size_t> fullest_;
  bool per_layer_weights_ =
      false;  // K3: a layer's weight gradients run right behind its input gradients (k3-facts 2.2)
  std::map<std::pair<int, int>, Flight> flights_;
  std::map<std::pair<int, int>, MemoryHandle> outputs_;
  std::map<int, MemoryHandle> images_;  // embeddings that this rank made, by micro-batch
  std::function<void()> pending_;
};

}  // namespace

const char* to_string(MemoryCategory c) {
  static constexpr const char* kNames[kMemoryCategories] = {
      "weights",   "gradients",        "optimizer",           "activations", "activation gradients",
      "workspace", "weight gradients", "gathered parameters", "exchange",    "kept for another rank"};
  return kNames[static_cast<std::size_t>(c)];
}

void walk_memory(const StepPlan& plan, const SoftwareProfile& software, int rank, const MemoryWalkOptions& options,
                 MemorySink& sink) {
  Walk(plan, software, rank, options, sink).run();
}

}  // namespace k3sim
