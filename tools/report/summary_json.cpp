#include "tools/report/summary_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/report/sha256.h"

namespace k3sim {

using Json = nlohmann::ordered_json;

namespace {

double rounded(double v) { return v == 0 || !std::isfinite(v) ? 0.0 : std::stod(fmt::format("{:.9g}", v)); }

Json exposed(const RankBreakdown& b) {
  return {{"tp", rounded(b.tp.seconds())}, {"cp", rounded(b.cp.seconds())}, {"ep", rounded(b.ep.seconds())},
          {"pp", rounded(b.pp.seconds())}, {"dp", rounded(b.dp.seconds())},
          {"offload", rounded(b.offload.seconds())}};
}

}  // namespace

const std::vector<BreakdownPart>& breakdown_parts() {
  static const std::vector<BreakdownPart> parts{
      {"compute", "kernels that do model work", &RankBreakdown::compute},
      {"recompute", "forward kernels run again in backward", &RankBreakdown::recompute},
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

std::string scenario_digest(const Scenario& scenario) { return sha256_hex(scenario.text); }

std::string summary_json(const Scenario& scenario, const StepPrediction& p) {
  const StepSummary& s = p.summary;
  const double step = s.step.seconds();
  Json j;
  j["step_time_s"] = rounded(step);
  j["step_time_p95_s"] = rounded(s.step_p95.seconds());
  j["tokens_per_s_per_gpu"] = rounded(s.tokens_per_s_per_gpu);
  j["model_tflops_per_gpu"] = rounded(s.model_tflops_per_gpu);
  j["mfu_pct"] = rounded(s.mfu_pct);
  j["hfu_pct"] = rounded(s.hfu_pct);
  j["peak_allocated_gib"] = rounded(s.peak_allocated.gibibytes());
  j["peak_reserved_gib"] = rounded(s.peak_reserved.gibibytes());
  j["capacity_gib"] = rounded(s.capacity.gibibytes());
  j["fits"] = s.fits;
  j["short_by_gib"] = rounded(s.short_by.gibibytes());
  j["bubble_pct"] = rounded(s.bubble_pct);
  j["exposed_comm_s"] = exposed(s.mean);
  j["compute_s"] = rounded(s.mean.compute.seconds());
  j["recompute_s"] = rounded(s.mean.recompute.seconds());
  j["optimizer_s"] = rounded(s.mean.optimizer.seconds());
  j["host_bound_s"] = rounded(s.mean.host.seconds());
  j["imbalance_s"] = rounded(s.mean.wait.seconds());
  j["goodput_pct"] = nullptr;
  j["cost_usd_per_step"] = rounded(s.cost_usd_per_step);
  j["provenance"] = to_string(s.provenance);
  j["assumed_pct"] = rounded(s.assumed_pct);
  j["folded"] = s.folded;
  j["fingerprint"] = fmt::format("{:016x}", s.fingerprint);
  j["k3sim_version"] = K3SIM_VERSION;
  j["scenario_sha256"] = scenario_digest(scenario);
  return j.dump(2) + "\n";
}

std::string ranks_csv(const StepPrediction& p) {
  std::string out = "rank";
  for (const BreakdownPart& part : breakdown_parts()) out += fmt::format(",{}_s", part.key);
  out += ",step_s,allocated_bytes,reserved_bytes,short_by_bytes,peak_action\r\n";
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const RankBreakdown& b = p.ranks[i];
    out += fmt::format("{}", b.rank);
    for (const BreakdownPart& part : breakdown_parts()) out += fmt::format(",{:.9g}", (b.*part.field).seconds());
    const RankMemory& m = p.memory[i];
    out += fmt::format(",{:.9g},{},{},{},{}\r\n", b.sum().seconds(), m.allocated.count(),
                       (m.reserved + m.outside).count(), m.short_by.count(), m.peak_action);
  }
  return out;
}

std::string breakdown_csv(const StepPrediction& p) {
  std::string out = "rank,part,seconds,share_pct\r\n";
  for (const RankBreakdown& b : p.ranks)
    for (const BreakdownPart& part : breakdown_parts()) {
      const double s = (b.*part.field).seconds();
      out += fmt::format("{},{},{:.9g},{:.6g}\r\n", b.rank, part.key, s, 100.0 * s / p.summary.step.seconds());
    }
  return out;
}

std::string memory_csv(const StepPrediction& p) {
  std::string out = "rank,where,category,bytes\r\n";
  for (const RankMemory& m : p.memory) {
    const auto row = [&](const char* where, const char* category, Bytes b) {
      out += fmt::format("{},{},{},{}\r\n", m.rank, where, category, b.count());
    };
    row("gpu", "weights", m.states.weights);
    row("gpu", "gradients", m.states.gradients);
    row("gpu", "optimizer", m.states.optimizer);
    row("gpu", "activations", m.activations);
    row("gpu", "transient", m.transient);
    row("gpu", "staging", m.staging);
    row("gpu", "outside_allocator", m.outside);
    row("host", "activations", m.host_activations);
    row("host", "optimizer", m.states.host_optimizer);
    row("host", "gradients", m.states.host_gradients);
  }
  return out;
}

}  // namespace k3sim
