// Source: kernel_validation.h.
#include "tools/validation/kernel_validation.h"

#include <fmt/format.h>

#include <map>

#include "calibrate/fit/profile_fit.h"
#include "models/cost/curve.h"

namespace k3sim {

namespace {

KernelPrediction start(const KernelRow& row) {
  const Measurement& m = row.measurement;
  KernelPrediction p;
  p.family = row.family.empty() ? m.id.section : row.family;
  p.kernel = m.id.kernel;
  p.pass = m.id.pass;
  p.dtype = m.id.dtype;
  p.params = m.id.params;
  p.measured_us = m.median_us;
  p.reason = row.reason;
  return p;
}

double host_copy_us(const HostLink& host, const KernelRow& row) {
  const bool both = row.curve == "copy_both";
  const Bandwidth rate = both ? 2.0 * host.both : host.single;
  return (host.latency + row.kernel.bytes / rate).microseconds();
}

KernelPrediction predict_row(const GpuProfile& profile, const CostModel& general, const KernelRow& row) {
  KernelPrediction p = start(row);
  if (!row.usable()) return p;
  if (const auto own = profile.curves.find(row.curve); own != profile.curves.end()) {
    p.predicted_us = make_curve(own->second)->microseconds(row.kernel);
    p.provenance = own->second.provenance;
  } else if (row.family == "copy") {
    p.predicted_us = host_copy_us(profile.host, row);
    p.provenance = Provenance::datasheet;
  } else {
    const KernelTime t = general.time(row.kernel);
    p.predicted_us = t.time.microseconds();
    p.provenance = t.provenance;
  }
  return p;
}

KernelPrediction usual(const CostModel& model, const Kernel& k) {
  KernelPrediction p;
  p.family = to_string(k.family);
  p.kernel = k.name;
  p.pass = to_string(k.pass);
  p.dtype = to_string(k.dtype);
  p.params = k.m > 0 && k.k > 0 ? fmt::format("M={};N={};K={}", k.m, k.n, k.k) : "";
  if (k.groups > 1) p.params = fmt::format("G={};tokens={};N={};K={}", k.groups, k.m, k.n, k.k);
  if (k.heads > 0) p.params = fmt::format("B={};H={};S={};dqk={};dv={}", k.batch, k.heads, k.seq_q, k.dim_qk, k.dim_v);
  const KernelTime t = model.time(k);
  p.predicted_us = t.time.microseconds();
  p.provenance = t.provenance;
  return p;
}

}  // namespace

std::vector<KernelPrediction> predict_rows(const GpuProfile& profile, const std::vector<KernelRow>& rows) {
  const std::shared_ptr<const CostModel> general = make_cost_model(profile);
  std::vector<KernelPrediction> out;
  for (const KernelRow& row : rows) out.push_back(predict_row(profile, *general, row));
  return out;
}

std::vector<KernelPrediction> predict_held_out(const GpuProfile& profile, const std::vector<KernelRow>& rows,
                                               const std::string& file) {
  const ProfileFit fit = fit_profile(profile, rows, file);
  std::map<const KernelRow*, double> held_out;
  for (const HeldOut& h : fit.held_out) held_out[h.row] = h.predicted_us;
  std::vector<KernelPrediction> out;
  for (const KernelRow& row : rows) {
    KernelPrediction p = start(row);
    if (const auto found = held_out.find(&row); found != held_out.end()) {
      p.predicted_us = found->second;
      p.provenance = Provenance::fitted;
    } else if (p.reason.empty()) {
      p.reason = "the only shape family of its curve";
    }
    out.push_back(std::move(p));
  }
  return out;
}

std::vector<KernelPrediction> predict_usual_kernels(const GpuProfile& profile) {
  constexpr std::int64_t kTokens = 8192, kHidden = 7168, kLatent = 3584, kExpert = 3072, kHeads = 96, kDim = 128;
  const std::shared_ptr<const CostModel> model = make_cost_model(profile);
  std::vector<KernelPrediction> out;
  for (const Pass pass : {Pass::forward, Pass::input_grad, Pass::weight_grad}) {
    const char* shared = "shared_up";
    out.push_back(usual(*model, gemm_kernel("kda_qkv", pass, Dtype::bf16, kTokens, 3 * kHeads * kDim, kHidden)));
    out.push_back(usual(*model, gemm_kernel("latent_down", pass, Dtype::bf16, kTokens, kLatent, kHidden)));
    out.push_back(usual(*model, gemm_kernel(shared, pass, Dtype::bf16, kTokens, 2 * kExpert * 2, kHidden)));
    out.push_back(usual(
        *model, grouped_gemm_kernel("experts_up", pass, Dtype::bf16, 28, 16 * kTokens / 2, 2 * kExpert, kLatent)));
  }
  out.push_back(usual(*model, gemm_kernel("latent_down", Pass::forward, Dtype::fp8, kTokens, kLatent, kHidden)));
  const AttentionShape mla{
      .batch = 1, .heads = kHeads, .kv_heads = kHeads, .seq_q = kTokens, .seq_k = kTokens, .dim_qk = 192, .dim_v = 128};
  for (const Pass pass : {Pass::forward, Pass::input_grad}) {
    out.push_back(usual(*model, attention_kernel("mla_core", pass, mla)));
    out.push_back(usual(*model, kda_kernel("kda_core", pass, 1, kTokens, kHeads, kDim)));
  }
  for (const MemoryClass c : {MemoryClass::norm, MemoryClass::add, MemoryClass::activation, MemoryClass::gather,
                              MemoryClass::quantize, MemoryClass::conv, MemoryClass::mix})
    out.push_back(usual(*model, memory_kernel(to_string(c), Pass::forward, c, Bytes(kTokens * kHidden * 4))));
  return out;
}

std::vector<FamilySummary> summarize_families(const std::vector<KernelPrediction>& predictions) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> ratios;
  for (const KernelPrediction& p : predictions) {
    if (!p.compared()) continue;
    if (ratios.count(p.family) == 0) order.push_back(p.family);
    ratios[p.family].push_back(p.predicted_us / p.measured_us);
  }
  std::vector<FamilySummary> out;
  for (const std::string& f : order) out.push_back({f, summarize_errors(ratios[f])});
  return out;
}

}  // namespace k3sim
