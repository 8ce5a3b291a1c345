// Source: DeepSeek-V3 report section 3.2.1; see predicted_trace.h.
#include "tools/import/predicted_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/build/step.h"
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
      return TraceFamily::gemm;
    case KernelFamily::grouped_gemm:
      return TraceFamily::grouped_gemm;
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
  if (i.is_comm && backward && i.module == Module::dispatch) part = "combine";
  if (i.is_comm && backward && i.module == Module::combine) part = "dispatch";
  return fmt::format("{}({})", part, weight ? 'W' : backward ? 'B' : 'F');
}

int stream_of(Lane lane) {
  return lane == Lane::compute ? 0 : lane == Lane::side ? 2 : 1;
}

struct ProgramItem {
  const TimedItem* item;
  bool backward;
  std::vector<std::size_t> after;
};

void append(const TimedPass& pass, bool backward, std::vector<ProgramItem>& program) {
  const std::size_t base = program.size();
  for (std::size_t i = 0; i < pass.items.size(); ++i) {
    ProgramItem p{&pass.items[i], backward, {}};
    for (std::uint16_t a : pass.items[i].after) p.after.push_back(base + a);
    if (p.after.empty() && base + i > 0) p.after.push_back(base + i - 1);
    program.push_back(std::move(p));
  }
}

// Two programs share the streams of one GPU.
class PairWalk {
 public:
  explicit PairWalk(std::array<std::vector<ProgramItem>, 2> programs) : programs_(std::move(programs)) {
    for (std::size_t p = 0; p < 2; ++p) {
      end_[p].assign(programs_[p].size(), -1);
      for (std::size_t i = 0; i < programs_[p].size(); ++i)
        queue_[p][static_cast<std::size_t>(programs_[p][i].item->lane)].push_back(i);
    }
  }

  PredictedTrace run() {
    while (place_earliest()) {
    }
    for (const PredictedWork& w : out_.work) out_.span_ns = std::max(out_.span_ns, w.time.end_ns);
    return std::move(out_);
  }

 private:
  // -1: something it waits for is not placed yet.
  std::int64_t ready(std::size_t p, std::size_t item) const {
    std::int64_t at = 0;
    for (std::size_t a : programs_[p][item].after) {
      if (end_[p][a] < 0) return -1;
      at = std::max(at, end_[p][a]);
    }
    return at;
  }

  bool place_earliest() {
    std::int64_t best = -1;
    std::size_t best_program = 0, best_lane = 0;
    for (std::size_t p : {std::size_t{1}, std::size_t{0}})
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if (next_[p][lane] >= queue_[p][lane].size()) continue;
        const std::int64_t at = ready(p, queue_[p][lane][next_[p][lane]]);
        if (at < 0) continue;
        const std::int64_t start = std::max(at, free_[lane]);
        if (best < 0 || start < best) best = start, best_program = p, best_lane = lane;
      }
    if (best < 0) return false;
    place(best_program, best_lane, best);
    return true;
  }

  void place(std::size_t p, std::size_t lane, std::int64_t start) {
    const std::size_t index = queue_[p][lane][next_[p][lane]++];
    const ProgramItem& item = programs_[p][index];
    PredictedWork w;
    w.time.start_ns = start;
    w.time.end_ns = start + item.item->time.picoseconds() / 1000;
    w.time.stream = stream_of(item.item->lane);
    w.time.family = family_of(*item.item);
    w.name = item.item->name;
    w.action = action_of(*item.item, item.backward);
    end_[p][index] = free_[lane] = w.time.end_ns;
    out_.work.push_back(std::move(w));
  }

  std::array<std::vector<ProgramItem>, 2> programs_;
  std::array<std::vector<std::int64_t>, 2> end_;
  std::array<std::array<std::vector<std::size_t>, kLanes>, 2> queue_;
  std::array<std::array<std::size_t, kLanes>, 2> next_{};
  std::array<std::int64_t, kLanes> free_{};
  PredictedTrace out_;
};

std::vector<const TimedLayer*> layers_of_rank(const StepPlan& plan, int rank, bool all_parts) {
  std::vector<const TimedLayer*> out;
  std::vector<bool> seen(plan.chunks.size(), false);
  for (int stage : plan.schedule.stages_of_rank(rank)) {
    const auto chunk = static_cast<std::size_t>(plan.schedule.model_stage(stage));
    if (chunk >= plan.chunks.size() || seen[chunk]) continue;
    if (!all_parts && !out.empty()) break;  // a pair is one chunk
    seen[chunk] = true;
    for (const ChunkPart& part : plan.chunks[chunk].parts)
      if (part.timed && (all_parts || part.kind == ChunkPart::Kind::layer)) out.push_back(part.timed);
  }
  return out;
}

PredictedTrace predict_pair(const StepPlan& plan, int rank) {
  std::array<std::vector<ProgramItem>, 2> programs;
  const std::vector<const TimedLayer*> layers = layers_of_rank(plan, rank, false);
  for (const TimedLayer* l : layers) append(l->forward, false, programs[0]);
  for (auto l = layers.rbegin(); l != layers.rend(); ++l) append((*l)->backward, true, programs[1]);
  PredictedTrace out = PairWalk(std::move(programs)).run();
  out.layers = static_cast<int>(layers.size());
  return out;
}

PredictedTrace predict_whole_step(const StepPlan& plan, int rank, Time step) {
  std::array<std::vector<ProgramItem>, 2> programs;
  const std::vector<const TimedLayer*> layers = layers_of_rank(plan, rank, true);
  for (std::int64_t m = 0; m < plan.microbatches; ++m) {
    for (const TimedLayer* l : layers) append(l->forward, false, programs[0]);
    for (auto l = layers.rbegin(); l != layers.rend(); ++l) append((*l)->backward, true, programs[0]);
  }
  PredictedTrace out = PairWalk(std::move(programs)).run();
  out.layers = static_cast<int>(layers.size());
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
