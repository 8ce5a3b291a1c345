#include "tools/report/summary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/build/step_errors.h"
#include "models/failure/goodput.h"
#include "tools/report/moe_tables.h"
#include "tools/report/network_summary.h"
#include "tools/report/sha256.h"

namespace k3sim {

using Json = nlohmann::ordered_json;

namespace {

double rounded(double v) {
  return v == 0 || !std::isfinite(v) ? 0.0 : std::stod(fmt::format("{:.9g}", v));
}

Json exposed(const RankBreakdown& b) {
  return {{"tp", rounded(b.tp.seconds())}, {"cp", rounded(b.cp.seconds())}, {"ep", rounded(b.ep.seconds())},
          {"pp", rounded(b.pp.seconds())}, {"dp", rounded(b.dp.seconds())}, {"offload", rounded(b.offload.seconds())}};
}

// Decoder layers of every model chunk, as parallel.stage_layers takes them.
std::vector<int> stage_layers(const StepPlan& plan) {
  std::vector<int> out;
  for (const Chunk& c : plan.chunks)
    out.push_back(static_cast<int>(std::count_if(
        c.parts.begin(), c.parts.end(), [](const ChunkPart& part) { return part.kind == ChunkPart::Kind::layer; })));
  return out;
}

}  // namespace

const std::vector<BreakdownPart>& breakdown_parts() {
  static const std::vector<BreakdownPart> parts{
      {"compute", "kernels that do model work", &RankBreakdown::compute},
      {"recompute", "forward kernels run again in backward", &RankBreakdown::recompute},
      {"vision", "vision encoder: forward, rebuild and backward", &RankBreakdown::vision},
      {"tp", "exposed tensor-parallel communication", &RankBreakdown::tp},
      {"cp", "exposed context-parallel communication", &RankBreakdown::cp},
      {"ep", "exposed expert all-to-all", &RankBreakdown::ep},
      {"pp", "exposed pipeline transfers", &RankBreakdown::pp},
      {"dp", "exposed gradient reduction and parameter gather", &RankBreakdown::dp},
      {"offload", "waiting for copies to or from host memory", &RankBreakdown::offload},
      {"bubble", "waiting for other pipeline ranks", &RankBreakdown::bubble},
      {"host", "waiting for kernel launches", &RankBreakdown::host},
      {"optimizer", "optimizer step", &RankBreakdown::optimizer},
      {"wait", "end-of-step synchronisation and framework", &RankBreakdown::wait}};
  return parts;
}

const std::vector<BubbleCause>& bubble_causes() {
  static const std::vector<BubbleCause> causes{
      {"warm_up", "before the rank's first backward", &BubbleCauses::warm_up},
      {"cool_down", "after the rank's last forward", &BubbleCauses::cool_down},
      {"imbalance", "in between, would vanish if all stages took the mean time", &BubbleCauses::imbalance},
      {"dependency", "in between, the order itself makes the rank wait", &BubbleCauses::dependency}};
  return causes;
}

std::string scenario_digest(const Scenario& scenario) {
  return sha256_hex(scenario.text);
}

std::string summary_json(const Scenario& scenario, const StepPrediction& p) {
  const StepSummary& s = p.summary;
  const double step = s.step.seconds();
  Json j;
  j["step_time_s"] = rounded(step);
  j["step_time_p95_s"] = rounded(s.step_p95.seconds());
  const StepErrors& error = step_errors(scenario.model);
  j["step_time_80_s"] = {rounded(step * error.low80), rounded(step * error.high80)};
  j["step_time_95_s"] = {rounded(step * error.low95), rounded(step * error.high95)};
  j["tokens_per_s_per_gpu"] = rounded(s.tokens_per_s_per_gpu);
  j["model_tflops_per_gpu"] = rounded(s.model_tflops_per_gpu);
  j["mfu_pct"] = rounded(s.mfu_pct);
  j["hfu_pct"] = rounded(s.hfu_pct);
  j["peak_allocated_gib"] = rounded(s.peak_allocated.gibibytes());
  j["peak_reserved_gib"] = rounded(s.peak_reserved.gibibytes());
  j["capacity_gib"] = rounded(s.capacity.gibibytes());
  j["fits"] = s.fits;
  j["short_by_gib"] = rounded(s.short_by.gibibytes());
  j["fullest_rank"] = s.worst_memory_rank;
  j["host_peak_gib"] = rounded(s.host_peak.gibibytes());
  j["host_short_by_gib"] = rounded(s.host_short_by.gibibytes());
  j["bubble_pct"] = rounded(s.bubble_pct);
  for (const BubbleCause& cause : bubble_causes())
    j["idle_s"][cause.key] = rounded((s.mean.why.*cause.field).seconds());
  j["idle_s"]["communication"] = rounded(s.mean.pp.seconds());
  j["exposed_comm_s"] = exposed(s.mean);
  j["compute_s"] = rounded(s.mean.compute.seconds());
  j["recompute_s"] = rounded(s.mean.recompute.seconds());
  j["optimizer_s"] = rounded(s.mean.optimizer.seconds());
  j["host_bound_s"] = rounded(s.mean.host.seconds());
  j["imbalance_s"] = rounded(s.mean.wait.seconds());
  j["goodput_pct"] = rounded(100.0 * daly_goodput(scenario.cluster.gpus()).share);
  j["cost_usd_per_step"] = rounded(s.cost_usd_per_step);
  if (Json moe = moe_summary(scenario, p); !moe.is_null()) j["moe"] = std::move(moe);
  j["provenance"] = to_string(s.provenance);
  j["assumed_pct"] = rounded(s.assumed_pct);
  j["folded"] = s.folded;
  j["network"] = network_json(s.network);
  j["fingerprint"] = fmt::format("{:016x}", s.fingerprint);
  j["k3sim_version"] = K3SIM_VERSION;
  j["scenario_sha256"] = scenario_digest(scenario);
  if (p.plan) j["stage_layers"] = stage_layers(*p.plan);
  return j.dump(2) + "\n";
}

std::vector<MemoryPart> memory_parts(const RankMemory& m) {
  const Bytes named = m.states.gpu() + m.activations + m.transient + m.staging + m.partner_pool;
  const Bytes slack = m.reserved > named ? m.reserved - named : Bytes(0);
  return {
      {"weights", "parameters in the precision of compute", false, m.states.weights},
      {"gradients", "gradient buffers", false, m.states.gradients},
      {"optimizer", "optimizer states and master weights", false, m.states.optimizer},
      {"activations", "tensors kept from forward to backward, of the micro-batches in flight", false, m.activations},
      {"transient", "workspace and replayed tensors at the peak", false, m.transient},
      {"staging", "buffers of offload and expert dispatch", false, m.staging},
      {"remote_pool", "tensors kept for another pipeline rank", false, m.partner_pool},
      {"fragmentation", "held by the allocator without being handed out, and library workspaces", false, slack},
      {"outside_allocator", "CUDA context and communicators", false, m.outside},
      {"activations", "offloaded activations", true, m.host_activations},
      {"optimizer", "offloaded optimizer states", true, m.states.host_optimizer},
      {"gradients", "offloaded gradients", true, m.states.host_gradients}};
}

}  // namespace k3sim
