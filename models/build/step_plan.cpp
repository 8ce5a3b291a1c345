// Resolves degrees, makes the schedule and cuts the model into chunks. Source: Megatron-LM pipeline layout rules;
// balanced_cut is the linear partition problem by dynamic programming.
#include "models/build/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/build/pair_actions.h"
#include "models/build/partition.h"
#include "models/build/remote_pool.h"
#include "models/build/schedule_costs.h"
#include "models/build/stage_policies.h"
#include "models/build/vision_load.h"
#include "models/build/vision_schedule.h"
#include "models/schedule/schedule_file.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

void resolve_degrees(StepPlan& plan) {
  Scenario& s = plan.scenario;
  ParallelConfig& p = s.parallel;
  const int model_parallel = p.tp * p.pp * p.cp;
  if (p.dp == 0) p.dp = s.cluster.gpus() / std::max(1, model_parallel);
  if (p.dp < 1 || model_parallel * p.dp != s.cluster.gpus())
    throw ConfigError(fmt::format("tp {} x pp {} x cp {} x dp {} = {} does not equal the cluster's {} GPUs", p.tp, p.pp,
                                  p.cp, p.dp, model_parallel * p.dp, s.cluster.gpus()),
                      "parallel");
  const BatchConfig& b = s.batch;
  plan.global_sequences = b.global_sequences > 0 ? b.global_sequences : b.global_tokens / b.sequence;
  const std::int64_t per_pass = b.micro_batch * p.dp;
  if (per_pass <= 0 || plan.global_sequences % per_pass != 0)
    throw ConfigError(fmt::format("{} sequences per step are not a multiple of micro_batch {} x dp {} = {}",
                                  plan.global_sequences, b.micro_batch, p.dp, per_pass),
                      "batch");
  plan.microbatches = plan.global_sequences / per_pass;
}

class Planner {
 public:
  Planner(const Scenario& scenario, const Machine& machine, const StepReuse& reuse) : machine_(machine) {
    plan_.scenario = scenario;
    resolve_degrees(plan_);
    asked_ = plan_.scenario;
    plan_.placement = std::make_unique<Placement>(plan_.scenario.parallel, plan_.scenario.cluster.gpus_per_node);
    plan_.comm = std::make_unique<CommCoster>(machine_, plan_.scenario, *plan_.placement);
    plan_.layers = reuse.layers ? reuse.layers
                                : std::make_shared<const LayerSet>(plan_.scenario, machine_, *plan_.placement,
                                                                   *plan_.comm, reuse.moe);
    plan_.split = plan_.layers->split();
  }

  StepPlan make(const StepReuse& reuse) && {
    if (reuse.schedule)
      plan_.schedule = *reuse.schedule;
    else
      plan_.schedule = make_plan_schedule(plan_.scenario, plan_.microbatches);
    if (!reuse.chunks && plan_.scenario.parallel.partition != "even" && plan_.scenario.parallel.stage_layers.empty())
      plan_.scenario.parallel.stage_layers = balanced_stage_layers(plan_, machine_);
    plan_.chunks =
        reuse.chunks ? *reuse.chunks : cut_chunks(plan_.scenario, *plan_.layers, plan_.schedule.stages_per_chain());
    if (plan_.layers->head_share() != nullptr) split_vocabulary(plan_.chunks, *plan_.layers, rank_of_chunk());
    // Its order depends on how long the stages take, and these on the cut that the schedule's placement gives.
    if (!reuse.schedule && plan_.scenario.schedule.name == "automatic" && plan_.scenario.schedule.file.empty())
      plan_.schedule = make_plan_schedule(plan_.scenario, plan_.microbatches, schedule_costs(plan_).stages);
    if (plan_.scenario.vision.placement != "none") {
      plan_.vision = make_vision_plan(plan_, machine_);
      plan_.schedule =
          place_vision(plan_.schedule, plan_.scenario.vision.placement, plan_.vision.microbatches, stage_costs(plan_));
    }
    if (plan_.scenario.activation.policy == "auto")
      choose_stage_policies(plan_, machine_, asked_, reuse.choices.get());
    else
      keep_on_receivers(plan_, machine_);
    return std::move(plan_);
  }

 private:
  std::vector<int> rank_of_chunk() const {
    const auto chunks = static_cast<std::ptrdiff_t>(plan_.chunks.size());
    return {plan_.schedule.rank_of_stage.begin(), plan_.schedule.rank_of_stage.begin() + chunks};
  }

  const Machine& machine_;
  StepPlan plan_;
  Scenario asked_;  // before the partition
};

}  // namespace

Schedule make_plan_schedule(const Scenario& s, std::int64_t microbatches, const std::vector<StageTimes>& times) {
  ScheduleSpec spec;
  spec.name = s.schedule.name == "1f1b" && s.parallel.vpp > 1 ? "interleaved" : s.schedule.name;
  if (s.parallel.pp == 1 && (spec.name == "k3" || spec.name == "interleaved")) spec.name = "1f1b";
  spec.ranks = s.parallel.pp;
  spec.chunks = s.parallel.pp == 1 ? 1 : s.parallel.vpp;
  spec.microbatches = static_cast<int>(microbatches);
  spec.extra_warmup = s.schedule.extra_warmup;
  spec.split_wgrad = s.schedule.split_wgrad;
  spec.overlap_send_with_wgrad = s.overlap.p2p;
  spec.slices = s.schedule.slices;
  spec.memory_limit = s.schedule.memory_limit;
  spec.times_per_stage = times;
  if (spec.name == "seq1f1b" && s.batch.sequence % (s.parallel.cp * spec.slices) != 0)
    throw ConfigError(fmt::format("a sequence of {} tokens does not divide into {} slices (over cp {})",
                                  s.batch.sequence, spec.slices, s.parallel.cp),
                      "schedule.slices");
  // A file says exactly what the trainer runs: nothing is paired or reordered.
  if (!s.schedule.file.empty()) return read_schedule_for(s.schedule.file, spec);
  Schedule schedule = make_schedule(spec);
  if (s.moe.overlap_ep) pair_forward_backward(schedule);
  return schedule;
}

StepPlan make_step_plan(const Scenario& scenario, const Machine& machine, const StepReuse& reuse) {
  return std::move(Planner(scenario, machine, reuse)).make(reuse);
}

std::shared_ptr<const LayerSet> make_layer_set(const Scenario& scenario, const Machine& machine, MoeEffectsCache* moe) {
  StepPlan plan;
  plan.scenario = scenario;
  resolve_degrees(plan);
  const Placement placement(plan.scenario.parallel, plan.scenario.cluster.gpus_per_node);
  return std::make_shared<const LayerSet>(plan.scenario, machine, placement,
                                          CommCoster(machine, plan.scenario, placement), moe);
}

}  // namespace k3sim
