#include "tools/report/text_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/build/step_errors.h"
#include "models/config/model_kinds.h"
#include "models/failure/goodput.h"
#include "tools/report/mechanism_tables.h"
#include "tools/report/network_summary.h"
#include "tools/report/summary_json.h"

namespace k3sim {

namespace {

// At most the full width: a share above one ends in an arrow.
std::string bar(double share, bool colour) {
  const int n = static_cast<int>(std::min(share, 1.0) * 40.0 + 0.5);
  std::string blocks;
  for (int i = 0; i < n; ++i) blocks += "\u2588";
  if (share > 1.0) blocks += "\u25b6";
  return colour && n > 0 ? "\x1b[36m" + blocks + "\x1b[0m" : blocks;
}

// Pipeline rank whose node keeps most on the host.
int fullest_host(const StepPrediction& p) {
  return std::max_element(p.memory.begin(), p.memory.end(),
                          [](const RankMemory& a, const RankMemory& b) { return a.host() < b.host(); })
      ->rank;
}

std::string verdict(const StepPrediction& p, bool colour) {
  const StepSummary& s = p.summary;
  if (s.fits)
    return fmt::format("fits: {:.1f} of {:.1f} GiB on the fullest GPU (pipeline rank {})", s.peak_reserved.gibibytes(),
                       s.capacity.gibibytes(), s.worst_memory_rank);
  std::string text = "does NOT fit:";
  if (s.short_by > Bytes(0))
    text +=
        fmt::format(" {:.2f} GiB needed on pipeline rank {}, {:.2f} GiB there; short by {:.2f} GiB",
                    s.peak_reserved.gibibytes(), s.worst_memory_rank, s.capacity.gibibytes(), s.short_by.gibibytes());
  if (s.host_short_by > Bytes(0))
    text += fmt::format(
        "{} host memory of a node: {:.0f} GiB needed on pipeline rank {}, {:.0f} GiB there; short by {:.0f} GiB",
        s.short_by > Bytes(0) ? ";" : "", s.host_peak.gibibytes(), fullest_host(p), s.host_capacity.gibibytes(),
        s.host_short_by.gibibytes());
  return colour ? "\x1b[31m" + text + "\x1b[0m" : text;
}

std::string memory_lines(const StepPrediction& p, bool colour) {
  const StepSummary& s = p.summary;
  const RankMemory& m = p.memory[static_cast<std::size_t>(s.worst_memory_rank)];
  std::string out =
      fmt::format("\nmemory of the fullest GPU (peak at {}), of {:.1f} GiB\n", m.peak_action, s.capacity.gibibytes());
  Bytes host;
  for (const MemoryPart& part : memory_parts(m)) {
    if (part.host) host += part.bytes;
    if (part.host || part.bytes == Bytes(0)) continue;
    out += fmt::format("  {:<17} {:>8.2f} GiB {:>5.1f} %  {}\n", part.key, part.bytes.gibibytes(),
                       100.0 * (part.bytes / s.capacity), bar(part.bytes / s.capacity, colour));
  }
  if (host > Bytes(0)) out += fmt::format("  {:<17} {:>8.2f} GiB per GPU\n", "in host memory", host.gibibytes());
  return out;
}

// The causes of the bubble in one line below it.
std::string bubble_lines(const StepSummary& s, double step) {
  std::string out;
  for (const BubbleCause& cause : bubble_causes()) {
    const double t = (s.mean.why.*cause.field).seconds();
    if (t >= 5e-4 * step) out += fmt::format("{}{} {:.3f} s", out.empty() ? "    " : ", ", cause.key, t);
  }
  return out.empty() ? out : out + "\n";
}

std::string layout(const Scenario& s) {
  const ParallelConfig& p = s.parallel;
  return fmt::format("tp{} pp{} vpp{} cp{} ep{} dp{}", p.tp, p.pp, p.vpp, p.cp, p.ep, p.dp);
}

}  // namespace

std::string text_summary(const Scenario& scenario, const StepPrediction& p, bool colour) {
  const StepSummary& s = p.summary;
  const double step = s.step.seconds();
  std::string out =
      fmt::format("{} on {} x {}: step {:.3f} s (95 % below {:.3f} s), MFU {:.1f} %, {:.1f} tokens/s per GPU\n",
                  scenario.model.name, scenario.cluster.gpus(), scenario.cluster.gpu, step, s.step_p95.seconds(),
                  s.mfu_pct, s.tokens_per_s_per_gpu);
  out += "  " + verdict(p, colour) + "\n";
  const StepErrors& error = step_errors(scenario.model);
  out += fmt::format(
      "  80 % within {:.2f} to {:.2f} s, 95 % within {:.2f} to {:.2f} s (published runs of {} models, families left "
      "out)\n",
      step * error.low80, step * error.high80, step * error.low95, step * error.high95,
      has_routed_experts(scenario.model) ? "MoE" : "dense");
  out += fmt::format("  {} | {} | {} tokens per step\n", layout(scenario),
                     scenario.schedule.file.empty() ? scenario.schedule.name : scenario.schedule.file,
                     static_cast<std::int64_t>(s.tokens_per_s_per_gpu * step * scenario.cluster.gpus() + 0.5));
  out += fmt::format(
      "  MFU {:.2f} % (model FLOPs, causal attention at half, no recompute; dense peak), HFU {:.2f} %, "
      "{:.1f} model TFLOP/s per GPU\n",
      s.mfu_pct, s.hfu_pct, s.model_tflops_per_gpu);
  out += fmt::format(
      "  costs: worst tier {}, {:.1f} % of the work uncalibrated; ${:.2f} per step; goodput under failures {:.1f} "
      "%\n\n",
      to_string(s.provenance), s.assumed_pct, s.cost_usd_per_step, 100.0 * daly_goodput(scenario.cluster.gpus()).share);
  out.insert(out.size() - 1, network_text(s.network, step));
  out += "where the step goes (mean over pipeline ranks)\n";
  for (const BreakdownPart& part : breakdown_parts()) {
    const double t = (s.mean.*part.field).seconds();
    if (t < 5e-4 * step) continue;  // 0.0 %
    out += fmt::format("  {:<17} {:>8.3f} s   {:>5.1f} %  {}\n", part.key, t, 100.0 * t / step, bar(t / step, colour));
    if (part.field == &RankBreakdown::bubble) out += bubble_lines(s, step);
  }
  return out + memory_lines(p, colour) + overlap_lines(p);
}

}  // namespace k3sim
