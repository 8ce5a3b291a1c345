// Source: DeepSeek-V3 report section 3.2.1; see predicted_trace.h.
#include "tools/import/predicted_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/build/step.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "tools/import/predicted_items.h"
#include "tools/import/predicted_step.h"

namespace k3sim {
namespace {

struct ProgramItem {
  const TimedItem* item;
  bool backward;
  std::vector<std::size_t> after;
};

// Items of one program, layer after layer; `after` are places in the same list.
using Program = std::vector<ProgramItem>;

void append(const TimedPass& pass, bool backward, Program& program) {
  const std::size_t base = program.size();
  for (std::size_t i = 0; i < pass.items.size(); ++i) {
    ProgramItem p{&pass.items[i], backward, {}};
    for (std::uint16_t a : pass.items[i].after) p.after.push_back(base + a);
    if (p.after.empty() && base + i > 0) p.after.push_back(base + i - 1);
    program.push_back(std::move(p));
  }
}

bool is_weight(const ProgramItem& p) {
  return p.backward && p.item->pass == Pass::weight_grad;
}

// Weight gradients run after the input gradients of their block, which must not wait for them.
void defer_weight_gradients(Program& program) {
  for (ProgramItem& p : program) {
    if (is_weight(p)) continue;
    for (std::size_t& a : p.after)
      while (a > 0 && is_weight(program[a])) --a;
  }
}

struct Place {
  std::size_t program = 0, index = 0;
};

// What one layer does in one direction, cut at its expert communication.
struct LayerBlocks {
  std::array<std::vector<Place>, 3> input;   // before, between and after dispatch and combine
  std::array<std::vector<Place>, 3> weight;  // weight gradients of the same pieces
  std::array<std::vector<Place>, 2> exchange;
};

LayerBlocks blocks_of(const Program& program, std::size_t p, std::size_t from, std::size_t end) {
  LayerBlocks b;
  std::size_t piece = 0;
  for (std::size_t i = from; i < end; ++i) {
    const bool exchange = program[i].item->is_comm && program[i].item->lane == Lane::ep_comm && piece < 2;
    if (exchange)
      b.exchange[piece++].push_back({p, i});
    else
      (is_weight(program[i]) ? b.weight : b.input)[piece].push_back({p, i});
  }
  return b;
}

void put(std::vector<Place>& order, const std::vector<Place>& block) {
  order.insert(order.end(), block.begin(), block.end());
}

// DualPipe's order of an overlapped pair of layers: attn(F) mlp(B) mlp(W) mlp(F) attn(B) attn(W) beside combine(B)
// dispatch(F) dispatch(B) combine(F). What a layer does after its last exchange runs with the attention of the next.
std::vector<Place> pair_order(const std::vector<LayerBlocks>& forward, const std::vector<LayerBlocks>& backward) {
  std::vector<Place> order;
  const std::size_t layers = forward.size();
  for (std::size_t i = 0; i < layers; ++i) {
    const LayerBlocks &f = forward[i], &b = backward[i];
    if (i == 0) put(order, b.input[0]);
    put(order, b.exchange[0]);
    if (i > 0) put(order, forward[i - 1].input[2]);
    put(order, f.input[0]);
    put(order, f.exchange[0]);
    put(order, b.input[1]);
    put(order, b.exchange[1]);
    put(order, b.weight[0]);
    put(order, b.weight[1]);
    put(order, f.input[1]);
    put(order, f.exchange[1]);
    put(order, b.input[2]);
    if (i + 1 < layers) put(order, backward[i + 1].input[0]);
    put(order, b.weight[2]);
  }
  if (layers > 0) put(order, forward[layers - 1].input[2]);
  return order;
}

// Programs on the lanes of one GPU, every lane in the given order.
class LaneWalk {
 public:
  LaneWalk(std::vector<Program> programs, const std::vector<Place>& order, const Placement& placement)
      : placement_(placement), programs_(std::move(programs)) {
    for (const Program& p : programs_) end_.emplace_back(p.size(), -1);
    for (const Place& at : order)
      queue_[static_cast<std::size_t>(programs_[at.program][at.index].item->lane)].push_back(at);
    left_ = order.size();
  }

  PredictedTrace run() {
    for (std::size_t before = left_ + 1; left_ > 0 && left_ < before;) {
      before = left_;
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        while (next_[lane] < queue_[lane].size() && place(lane)) {
        }
    }
    CS_CHECK(left_ == 0, "{} items of a predicted trace wait for each other", left_);
    for (const PredictedWork& w : out_.work) out_.span_ns = std::max(out_.span_ns, w.time.end_ns);
    return std::move(out_);
  }

 private:
  bool place(std::size_t lane) {
    const Place at = queue_[lane][next_[lane]];
    const ProgramItem& item = programs_[at.program][at.index];
    std::int64_t start = free_[lane];
    for (std::size_t a : item.after) {
      if (end_[at.program][a] < 0) return false;
      start = std::max(start, end_[at.program][a]);
    }
    PredictedWork w = work_of_item(*item.item, item.backward, placement_);
    w.time.start_ns = start;
    w.time.end_ns = start + item.item->time.picoseconds() / 1000;
    end_[at.program][at.index] = free_[lane] = w.time.end_ns;
    out_.work.push_back(std::move(w));
    ++next_[lane];
    --left_;
    return true;
  }

  const Placement& placement_;
  std::vector<Program> programs_;
  std::vector<std::vector<std::int64_t>> end_;
  std::array<std::vector<Place>, kLanes> queue_;
  std::array<std::size_t, kLanes> next_{};
  std::array<std::int64_t, kLanes> free_{};
  std::size_t left_ = 0;
  PredictedTrace out_;
};

// A pair is one chunk without the tables at its ends.
std::vector<const TimedLayer*> layers_of_pair(const StepPlan& plan, int rank) {
  std::vector<const TimedLayer*> out;
  for (int stage : plan.schedule.stages_of_rank(rank)) {
    if (!out.empty()) break;
    for (const ChunkPart& part : plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts)
      if (part.timed && part.kind == ChunkPart::Kind::layer) out.push_back(part.timed);
  }
  return out;
}

PredictedTrace predict_pair(const StepPlan& plan, int rank) {
  std::vector<Program> programs(2);
  std::array<std::vector<LayerBlocks>, 2> blocks;
  const std::vector<const TimedLayer*> layers = layers_of_pair(plan, rank);
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (std::size_t p : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t from = programs[p].size();
      append(p == 0 ? layers[i]->forward : layers[layers.size() - 1 - i]->backward, p == 1, programs[p]);
      blocks[p].push_back(blocks_of(programs[p], p, from, programs[p].size()));
    }
  defer_weight_gradients(programs[1]);
  const std::vector<Place> order = pair_order(blocks[0], blocks[1]);
  PredictedTrace out = LaneWalk(std::move(programs), order, *plan.placement).run();
  out.layers = static_cast<int>(layers.size());
  return out;
}

}  // namespace

PredictedTrace predict_trace(const Scenario& scenario, const Machine& machine, TraceUnit unit, int rank) {
  if (rank < 0 || rank >= scenario.parallel.pp)
    throw ConfigError(fmt::format("pipeline rank {} is outside 0..{}", rank, scenario.parallel.pp - 1));
  if (unit == TraceUnit::pair) return predict_pair(make_step_plan(scenario, machine), rank);
  return predict_step_trace(scenario, machine, rank);
}

}  // namespace k3sim
