// Source: DeepSeek-V3 report section 3.2.1; see predicted_trace.h.
#include "tools/import/predicted_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "models/build/step.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {
namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

TraceFamily memory_family(const TimedItem& i) {
  const std::string_view name = i.name;
  if (has(name, "quantize") || has(name, "to_bf16") || has(name, "to_fp32")) return TraceFamily::fp8_cast;
  if (has(name, "rope")) return TraceFamily::rope;
  if (has(name, "permute") || has(name, "sort_rows") || has(name, "_rows")) return TraceFamily::permute;
  if (has(name, "norm")) return TraceFamily::norm;
  if (has(name, "glu") || has(name, "silu") || has(name, "gelu") || has(name, "act")) return TraceFamily::activation;
  if (has(name, "router")) return TraceFamily::router;
  return TraceFamily::elementwise;
}

TraceFamily family_of(const TimedItem& i) {
  const std::string_view name = i.name;
  if (i.is_comm) {
    // The gradient of a dispatch is a combine and the other way round.
    const bool gradient = has(name, "grad");
    if (i.module == Module::dispatch) return gradient ? TraceFamily::combine : TraceFamily::dispatch;
    if (i.module == Module::combine) return gradient ? TraceFamily::dispatch : TraceFamily::combine;
    return TraceFamily::collective;
  }
  switch (i.family) {
    case KernelFamily::gemm:
      return i.pass == Pass::weight_grad && i.module != Module::router ? TraceFamily::weight_grad : TraceFamily::gemm;
    case KernelFamily::grouped_gemm:
      return i.pass == Pass::weight_grad ? TraceFamily::weight_grad : TraceFamily::grouped_gemm;
    case KernelFamily::attention:
      return TraceFamily::attention;
    case KernelFamily::kda:
      return TraceFamily::linear_attention;
    case KernelFamily::topk:
      return TraceFamily::router;
    case KernelFamily::newton_schulz:
    case KernelFamily::optimizer:
      return TraceFamily::optimizer;
    case KernelFamily::memory:
      return memory_family(i);
  }
  return TraceFamily::other;
}

// DeepSeek's names: the norms, the router and the residual sums run inside attn(F) and attn(B), expert products in mlp;
// the backward of a dispatch, dispatch(B), holds a combine kernel and combine(B) a dispatch kernel.
std::string action_of(const TimedItem& i, bool backward) {
  const bool weight = backward && i.pass == Pass::weight_grad;
  const char* part = "mlp";
  switch (i.module) {
    case Module::qkv_proj:
    case Module::mla_up_proj:
    case Module::core_attention:
    case Module::attn_out:
    case Module::conv:
    case Module::gate:
    case Module::norm:
    case Module::router:
    case Module::residual:
      part = "attn";
      break;
    case Module::dispatch:
      part = i.is_comm ? "dispatch" : "mlp";
      break;
    case Module::combine:
      part = i.is_comm ? "combine" : "mlp";
      break;
    case Module::embedding:
      part = "embedding";
      break;
    case Module::head:
      part = "head";
      break;
    default:
      break;
  }
  return fmt::format("{}({})", part, weight ? 'W' : backward ? 'B' : 'F');
}

int stream_of(Lane lane) {
  return lane == Lane::compute ? 0 : lane == Lane::side ? 2 : 1;
}

struct ProgramItem {
  const TimedItem* item;
  bool backward;
  std::vector<std::size_t> after;
  std::optional<Action> action = {};  // of the schedule; none in a pair
};

const TimedPass& pass_of(const TimedLayer& t, ActionKind kind) {
  return kind == ActionKind::kForward     ? t.forward
         : kind == ActionKind::kBackward  ? t.backward
         : kind == ActionKind::kInputGrad ? t.input_grad
                                          : t.weight_grad;
}

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
  LaneWalk(std::vector<Program> programs, const std::vector<Place>& order) : programs_(std::move(programs)) {
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
    PredictedWork w;
    w.time.start_ns = start;
    w.time.end_ns = start + item.item->time.picoseconds() / 1000;
    w.time.stream = stream_of(item.item->lane);
    w.time.family = family_of(*item.item);
    w.name = item.item->name;
    w.pass = item.item->pass;
    w.plain = w.time.family != TraceFamily::weight_grad         ? w.time.family
              : item.item->family == KernelFamily::grouped_gemm ? TraceFamily::grouped_gemm
                                                                : TraceFamily::gemm;
    if (item.action) w.schedule_action = "PP:" + to_string(*item.action);  // PyTorch's record_function
    w.action = action_of(*item.item, item.backward);
    end_[at.program][at.index] = free_[lane] = w.time.end_ns;
    out_.work.push_back(std::move(w));
    ++next_[lane];
    --left_;
    return true;
  }

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
  PredictedTrace out = LaneWalk(std::move(programs), order).run();
  out.layers = static_cast<int>(layers.size());
  return out;
}

PredictedTrace predict_whole_step(const StepPlan& plan, int rank, Time step) {
  std::vector<Program> programs(1);
  Program& program = programs[0];
  const auto add = [&](const Action& a) {
    if (!is_plain_compute(a.kind)) return;
    const std::vector<ChunkPart>& parts =
        plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(a.stage))].parts;
    const bool forward = a.kind == ActionKind::kForward;
    const std::size_t from = program.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const TimedLayer& t = *parts[forward ? i : parts.size() - 1 - i].timed;
      append(pass_of(t, a.kind), !forward, program);
    }
    for (std::size_t i = from; i < program.size(); ++i) program[i].action = a;
  };
  for (const Action& a : plan.schedule.actions[static_cast<std::size_t>(rank)]) for_each_part(a, add);
  std::vector<Place> order;
  for (std::size_t i = 0; i < program.size(); ++i) order.push_back({0, i});
  PredictedTrace out = LaneWalk(std::move(programs), order).run();
  for (int s : plan.schedule.stages_of_rank(rank))
    out.layers += static_cast<int>(plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(s))].parts.size());
  out.span_ns = step.picoseconds() / 1000;
  return out;
}

}  // namespace

PredictedTrace predict_trace(const Scenario& scenario, const Machine& machine, TraceUnit unit, int rank) {
  if (rank < 0 || rank >= scenario.parallel.pp)
    throw ConfigError(fmt::format("pipeline rank {} is outside 0..{}", rank, scenario.parallel.pp - 1));
  const StepPlan plan = make_step_plan(scenario, machine);
  if (unit == TraceUnit::pair) return predict_pair(plan, rank);
  StepOptions options;
  options.allow_assumed = true;
  return predict_whole_step(plan, rank, predict_step(scenario, machine, options).summary.step);
}

}  // namespace k3sim
