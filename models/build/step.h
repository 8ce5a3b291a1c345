// Predicts one training step: plan -> task graph -> times -> breakdown, memory and the summary of product-spec 4.
//
// MFU = model FLOPs (causal attention at half, no recompute; forward x 3) / (step time x GPUs x dense peak of the
// precision of the matrix multiplications). HFU counts the executed matrix FLOPs, recompute included. The error bar is
// the root sum of squares of the kernel families' 95th-percentile residuals, weighted by their share of the step.
// Source: product-spec section 4; engine-design sections 1, 14.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/build/breakdown.h"
#include "models/build/overlap_report.h"
#include "models/build/stage_memory.h"
#include "models/build/step_graph.h"
#include "models/build/step_network.h"

namespace k3sim {

struct StepOptions {
  StepGraphOptions graph;
  bool allow_assumed = false;  // accept kernels and collectives without any calibration
  bool keep_graph = false;     // keep plan, graph and times for traces and reports
  StepReuse reuse;             // pieces of earlier plans (step_plan.h)
  MemoryOptions memory;        // how much of the allocator to emulate
  // Beyond this, ranks that see different networks share their compute and are told apart on the links only.
  std::size_t max_unfolded_tasks = 4'000'000;
};

// The numbers of a summary: bytes that may travel between processes (tools/planner/work_share.h).
struct StepFigures {
  Time step, step_p95;
  double tokens_per_s_per_gpu = 0, model_tflops_per_gpu = 0, mfu_pct = 0, hfu_pct = 0;
  double bubble_pct = 0, assumed_pct = 0;  // share of the step that rests on assumed or datasheet costs
  RankBreakdown mean;                      // mean over pipeline ranks
  Bytes peak_allocated, peak_reserved, capacity, short_by;
  Bytes host_peak, host_capacity, host_short_by;  // of the fullest node; capacity 0: not stated
  int worst_memory_rank = 0;
  bool fits = true;
  double cost_usd_per_step = 0;
  Provenance provenance = Provenance::measured;
  std::uint64_t fingerprint = 0;
};

struct StepSummary : StepFigures {
  std::vector<std::string> folded;  // dimensions whose compute one rank represents; network.unfolding tells the links
  StepNetworkReport network;
};

struct StepPrediction {
  StepSummary summary;
  std::vector<RankBreakdown> ranks;
  std::vector<RankMemory> memory;
  std::vector<std::vector<MemoryStep>> memory_over_time;  // by rank and action of its schedule; with keep_graph
  std::vector<LayerOverlap> overlap;                      // whether offload hides, by layer kind
  MoeEffects moe;                                         // draws included
  Bytes router_statistics;                                // all-reduced per MoE layer and step
  Time router_statistics_time;
  std::optional<StepPlan> plan;
  std::optional<StepGraph> graph;
  std::optional<TaskTimes> times;
};

// Model FLOPs of one token, forward and backward, as MFU counts them.
Flops trained_flops_per_token(const Scenario& scenario);

// Throws ConfigError for impossible layouts and, unless allow_assumed, for costs without any anchor.
StepPrediction predict_step(const Scenario& scenario, const Machine& machine, const StepOptions& options);

}  // namespace k3sim
