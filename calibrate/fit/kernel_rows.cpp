// One reader per section of the CSV; parameters are "k=v;k=v". Source: kernel_rows.h.
#include "calibrate/fit/kernel_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include "models/cost/gpu_profile.h"
#include "models/cost/group_sizes.h"

namespace k3sim {

namespace {

class Params {
 public:
  explicit Params(const std::string& text) {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find(';', i), text.size()), eq = text.find('=', i);
      if (eq < end) values_[text.substr(i, eq - i)] = text.substr(eq + 1, end - eq - 1);
      i = end + 1;
    }
  }
  std::int64_t at(const std::string& name) const {  // 0 when absent or no positive whole number
    const auto found = values_.find(name);
    std::int64_t v = 0;
    if (found != values_.end()) std::from_chars(found->second.data(), found->second.data() + found->second.size(), v);
    return std::max<std::int64_t>(v, 0);
  }
  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }
  bool has(std::initializer_list<const char*> names) const {
    for (const char* n : names)
      if (at(n) <= 0) return false;
    return true;
  }

 private:
  std::map<std::string, std::string> values_;
};

std::optional<Pass> pass_of(const std::string& text) {
  if (text == "fwd") return Pass::forward;
  if (text == "dgrad" || text == "bwd") return Pass::input_grad;
  if (text == "wgrad") return Pass::weight_grad;
  return std::nullopt;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void read_gemm(KernelRow& row, const Params& p) {
  const std::string& dtype = row.measurement.id.dtype;
  const bool block = dtype == "fp8_block", fp8 = block || dtype == "fp8" || dtype == "fp8_e4m3";
  if (!p.has({"M", "N", "K"})) return void(row.reason = "M, N and K are needed");
  if (!fp8 && dtype != "bf16" && dtype != "fp16") return void(row.reason = "no curve for data type " + dtype);
  const Pass pass = *pass_of(row.measurement.id.pass);
  row.kernel = gemm_kernel("gemm", pass,
                           block ? Dtype::fp8_block
                           : fp8 ? Dtype::fp8
                                 : Dtype::bf16,
                           p.at("M"), p.at("N"), p.at("K"));
  row.curve = block ? "gemm_fp8_block" : fp8 ? "gemm_fp8" : "gemm_bf16";
  row.family = fp8 ? row.curve : "gemm";
  row.shape_family = fmt::format("N={};K={}", p.at("N"), p.at("K"));
}

void read_grouped(KernelRow& row, const Params& p) {
  if (!p.has({"G", "tokens", "N", "K"})) return void(row.reason = "G, tokens, N and K are needed");
  const bool fp8 = contains(row.measurement.id.dtype, "fp8");
  const Pass pass = *pass_of(row.measurement.id.pass);
  row.kernel = grouped_gemm_kernel("grouped_gemm", pass, fp8 ? Dtype::fp8 : Dtype::bf16, p.at("G"), p.at("tokens"),
                                   p.at("N"), p.at("K"));
  const std::string skew = p.text("skew");
  if (!skew.empty() && skew != "uniform") row.kernel.largest_group = zipf_largest(p.at("G"), p.at("tokens"));
  row.curve = fp8 ? "grouped_fp8" : "grouped_bf16";
  row.family = "grouped_gemm";
  row.shape_family = fmt::format("G={};N={}", p.at("G"), p.at("N"));
}

void read_attention(KernelRow& row, const Params& p) {
  if (!p.has({"B", "H", "S", "dqk", "dv"})) return void(row.reason = "B, H, S, dqk and dv are needed");
  const std::string& name = row.measurement.id.kernel;
  // FlashAttention-3 is the generation of the cuDNN kernels.
  const bool fa2 = contains(name, "fa2"), cudnn = contains(name, "cudnn") || contains(name, "fa3");
  if (!fa2 && !cudnn) return void(row.reason = "no curve for attention kernel " + name);
  const bool forward = row.measurement.id.pass == "fwd";
  const std::int64_t heads = p.at("H"), kv = p.at("Hkv") > 0 ? p.at("Hkv") : heads;
  row.kernel = attention_kernel("attention", forward ? Pass::forward : Pass::input_grad,
                                {.batch = p.at("B"),
                                 .heads = heads,
                                 .kv_heads = kv,
                                 .seq_q = p.at("S"),
                                 .seq_k = p.at("S"),
                                 .dim_qk = p.at("dqk"),
                                 .dim_v = p.at("dv"),
                                 .causal = p.text("causal") != "0"});
  row.curve = fmt::format("attention_{}_{}", fa2 ? "fa2" : "cudnn", forward ? "forward" : "backward");
  row.family = "attention";
  row.shape_family = fmt::format("H={};S={};dqk={}", heads, p.at("S"), p.at("dqk"));
}

void read_kda_prepass(KernelRow& row, const Params& p, bool forward) {
  row.kernel = kda_prepass_kernel("kda_prepass", forward ? Pass::forward : Pass::input_grad, p.at("nseq"),
                                  p.at("T") / p.at("nseq"), p.at("H"), p.at("D"));
  row.curve = forward ? "kda_prepass_forward" : "kda_prepass_backward";
  row.family = "kda_prepass";
  row.shape_family = fmt::format("H={}", p.at("H"));
}

void read_kda(KernelRow& row, const Params& p) {
  if (!p.has({"T", "H", "D", "nseq"})) return void(row.reason = "T, H, D and nseq are needed");
  const std::string& name = row.measurement.id.kernel;
  const bool flash = contains(name, "flash_kda"), fla = contains(name, "fla_chunk_kda");
  const bool forward = row.measurement.id.pass == "fwd";
  if (name == "fla_kcp_prepass") return read_kda_prepass(row, p, forward);
  if ((!flash && !fla) || (flash && !forward)) return void(row.reason = "no curve for KDA kernel " + name);
  if (p.at("T") % p.at("nseq") != 0) return void(row.reason = "sequences of unequal length");
  row.kernel = kda_kernel("kda", forward ? Pass::forward : Pass::input_grad, p.at("nseq"), p.at("T") / p.at("nseq"),
                          p.at("H"), p.at("D"));
  row.curve = flash ? "kda_flash_forward" : forward ? "kda_fla_forward" : "kda_fla_backward";
  row.family = flash ? "flash_kda" : "triton_kda";
  row.shape_family = flash ? fmt::format("H={};nseq={}", p.at("H"), p.at("nseq")) : fmt::format("T={}", p.at("T"));
}

void read_memory(KernelRow& row, const Params& p) {
  const std::string& name = row.measurement.id.kernel;
  row.family = "memory";
  row.shape_family = row.measurement.id.params;
  if (contains(name, "topk")) {
    const std::size_t of = name.find("_of_");
    row.curve = "topk";
    row.kernel.family = KernelFamily::topk;
    row.kernel.m = p.at("M");
    row.kernel.n = of == std::string::npos ? 896 : std::atoll(name.c_str() + of + 4);
    return;
  }
  struct Known {
    const char* part;
    const char* curve;
    MemoryClass cls;
  };
  constexpr Known kKnown[] = {{"copy", "copy", MemoryClass::copy},
                              {"rms_norm", "norm", MemoryClass::norm},
                              {"silu_mul", "activation", MemoryClass::activation},
                              {"gather", "gather", MemoryClass::gather},
                              {"quant", "quantize", MemoryClass::quantize},
                              {"add", "add", MemoryClass::add}};
  for (const Known& k : kKnown) {
    if (!contains(name, k.part)) continue;
    row.curve = k.curve;
    row.kernel = memory_kernel(k.curve, Pass::forward, k.cls, Bytes::ceil(row.measurement.id.bytes));
    row.kernel.n = p.at("D");
    return;
  }
  row.reason = "no curve for " + name;
}

void read_copy(KernelRow& row, const Params& p) {
  const std::string& name = row.measurement.id.kernel;
  row.family = "copy";
  row.shape_family = row.measurement.id.params;
  row.kernel = memory_kernel("copy", Pass::forward, MemoryClass::copy, Bytes::ceil(row.measurement.id.bytes));
  if (contains(name, "h2d_d2h"))
    row.curve = "copy_both";
  else if (contains(name, "h2d"))
    row.curve = "copy_h2d";
  else if (contains(name, "d2h"))
    row.curve = "copy_d2h";
  else
    row.reason = "no curve for " + name;
  if (p.at("gpus") > 1) row.reason = "several GPUs at once";
}

void read_optimizer(KernelRow& row, const Params& p) {
  const std::string& name = row.measurement.id.kernel;
  row.shape_family = row.measurement.id.params;
  if (contains(name, "ns5")) {
    row.curve = row.family = "newton_schulz";
    row.kernel.family = KernelFamily::newton_schulz;
    row.kernel.batch = p.at("batch");
    row.kernel.m = p.at("m");
    row.kernel.n = p.at("n");
    const double m = static_cast<double>(p.at("m")), n = static_cast<double>(p.at("n"));
    row.kernel.flops = Flops(static_cast<double>(p.at("batch")) * 5.0 * (4.0 * m * m * n + 2.0 * m * m * m));
  } else if (contains(name, "adamw")) {
    row.curve = row.family = "adamw";
    row.kernel.family = KernelFamily::optimizer;
    row.kernel.m = p.at("n");
    row.kernel.bytes = Bytes::ceil(row.measurement.id.bytes);
  } else {
    row.reason = "no curve for " + name;
  }
}

void read_row(KernelRow& row) {
  const KernelId& id = row.measurement.id;
  const Params p(id.params);
  if (id.kernel.size() > 5 && id.kernel.ends_with("_warm")) return void(row.reason = "warm L2");
  if (!pass_of(id.pass)) return void(row.reason = "unknown pass '" + id.pass + "'");
  if (id.section == "gemm") return read_gemm(row, p);
  if (id.section == "grouped") return read_grouped(row, p);
  if (id.section == "attn") return read_attention(row, p);
  if (id.section == "kda") return read_kda(row, p);
  if (id.section == "mem") return read_memory(row, p);
  if (id.section == "copy") return read_copy(row, p);
  if (id.section == "optimizer") return read_optimizer(row, p);
  row.family = id.section;
  row.reason = id.section == "nccl"                                ? "communication between GPUs: see k3sim collective"
               : id.section == "launch" || id.section == "overlap" ? "enters the profile as a constant"
                                                                   : "no kernel curve for section " + id.section;
}

// 0: what frameworks call, FP8 products through cuBLASLt included; 1: cuBLASLt where they call another entry point or
// one kernel for all experts; 2: this project's kernels.
int distance_from_library(const std::string& kernel) {
  if (kernel.rfind("k3_", 0) == 0) return 2;
  return kernel.rfind("cublaslt_", 0) == 0 && kernel.rfind("cublaslt_fp8", 0) != 0 ? 1 : 0;
}

void mark_stand_ins(std::vector<KernelRow>& rows) {
  std::map<std::string, std::pair<int, std::string>> nearest;  // by curve
  for (const KernelRow& r : rows) {
    if (!r.usable()) continue;
    const std::pair<int, std::string> own{distance_from_library(r.measurement.id.kernel), r.measurement.id.kernel};
    const auto [found, is_new] = nearest.emplace(r.curve, own);
    if (!is_new && own.first < found->second.first) found->second = own;
  }
  for (KernelRow& r : rows)
    if (r.usable() && distance_from_library(r.measurement.id.kernel) > nearest[r.curve].first)
      r.reason = "stands in for a library that was measured, too: " + nearest[r.curve].second;
}

void mark_host_bound(std::vector<KernelRow>& rows) {
  std::map<std::string, double> bound;  // most work of a host-bound row, by curve
  for (const KernelRow& a : rows)
    for (const KernelRow& b : rows) {
      if (a.family != "triton_kda" || a.curve != b.curve || !a.usable()) continue;
      const double wa = kernel_work(a.kernel), wb = kernel_work(b.kernel);
      if (wa < wb && a.measurement.median_us > b.measurement.median_us) bound[a.curve] = std::max(bound[a.curve], wa);
    }
  for (KernelRow& r : rows) {
    const auto found = bound.find(r.curve);
    if (r.usable() && found != bound.end() && kernel_work(r.kernel) <= found->second)
      r.reason = "host-bound: launches, not the kernel, set this time (a larger shape is faster)";
  }
}

}  // namespace

std::vector<KernelRow> kernel_rows(const std::vector<Measurement>& measurements) {
  std::vector<KernelRow> rows;
  for (const Measurement& m : measurements) {
    KernelRow row;
    row.measurement = m;
    read_row(row);
    rows.push_back(std::move(row));
  }
  mark_stand_ins(rows);
  mark_host_bound(rows);
  return rows;
}

}  // namespace k3sim
