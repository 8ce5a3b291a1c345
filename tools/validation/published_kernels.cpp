// Translation by category and columns. Source: published_kernels.h.
#include "tools/validation/published_kernels.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tools/validation/collective_tables.h"

namespace k3sim {

namespace {

class Row {
 public:
  Row(const KernelTable& table, std::size_t index) : table_(table), index_(index) {}
  std::string text(const char* column) const { return table_.cell(index_, column); }
  bool has(const char* column) const { return !text(column).empty() && text(column) != "null"; }
  double number(const char* column) const { return std::atof(text(column).c_str()); }
  std::int64_t whole(const char* column) const { return std::atoll(text(column).c_str()); }

 private:
  const KernelTable& table_;
  std::size_t index_;
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string data_type(const KernelTable& table, const Row& row) {
  const std::string text = row.has("dtype") ? row.text("dtype") : table.op;
  if (contains(text, "fp8_block") || contains(text, "128x128") || contains(text, "1D2D")) return "fp8_block";
  if (contains(text, "fp8") || contains(text, "FP8")) return "fp8";
  return "bf16";
}

// Time from a column in microseconds or from TFLOP/s.
double time_us(const Row& row, double flops) {
  if (row.has("time_us")) return row.number("time_us");
  return row.number("tflops") > 0 ? flops / row.number("tflops") * 1e-6 : 0.0;
}

Measurement measurement(const KernelId& id, double us) {
  Measurement m;
  m.id = id;
  m.median_us = us;
  return m;
}

void read_gemm(const KernelTable& table, const Row& row, PublishedRow& out) {
  const std::int64_t m = row.whole("m"), n = row.whole("n"), k = row.whole("k");
  if (m <= 0 || n <= 0 || k <= 0) return void(out.reason = "no m, n and k");
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  out.measurement = measurement({.section = "gemm",
                                 .kernel = "linear",
                                 .pass = "fwd",
                                 .dtype = data_type(table, row),
                                 .params = fmt::format("M={};N={};K={}", m, n, k),
                                 .flops = flops},
                                time_us(row, flops));
}

void read_grouped(const KernelTable& table, const Row& row, PublishedRow& out) {
  const std::int64_t g = row.whole("groups"), m = row.whole("m_per_group"), n = row.whole("n"), k = row.whole("k");
  if (g <= 0 || m <= 0 || n <= 0 || k <= 0) return void(out.reason = "no groups, rows per group, n and k");
  const double flops =
      2.0 * static_cast<double>(g) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  out.measurement = measurement({.section = "grouped",
                                 .kernel = "grouped_mm",
                                 .pass = "fwd",
                                 .dtype = data_type(table, row),
                                 .params = fmt::format("G={};tokens={};N={};K={}", g, g * m, n, k),
                                 .flops = flops},
                                time_us(row, flops));
}

struct Heads {
  std::int64_t batch, heads, kv_heads, seq, dim_qk, dim_v;
  bool causal = true;
};

void set_attention(PublishedRow& out, const char* kernel, const char* pass, const Heads& h, double us) {
  out.measurement = measurement({.section = "attn",
                                 .kernel = kernel,
                                 .pass = pass,
                                 .dtype = "bf16",
                                 .params = fmt::format("B={};H={};Hkv={};S={};dqk={};dv={};causal={}", h.batch, h.heads,
                                                       h.kv_heads, h.seq, h.dim_qk, h.dim_v, h.causal ? 1 : 0)},
                                us);
}

void read_attention(const KernelTable& table, const Row& row, PublishedRow& out) {
  const std::int64_t seq = row.whole("seqlen");
  if (row.has("dtype") && row.text("dtype") != "bfloat16") return void(out.reason = "no curve for FP8 attention");
  if (table.column("q_heads") >= 0) return void(out.reason = "inference kernels that also fill a key-value cache");
  if (table.column("heads") >= 0 && contains(table.op, "192/128"))
    return set_attention(out, "cudnn class", "fwd",
                         {row.whole("batch"), row.whole("heads"), row.whole("heads"), seq, 192, 128},
                         row.number("time_us"));
  if (table.column("fa3_us") >= 0 && contains(table.op, "batch 4, 48 heads"))
    return set_attention(out, "cudnn class (fa3)", row.text("direction") == "bwd" ? "bwd" : "fwd",
                         {4, 48, 48, seq, 128, 128, row.text("causal") == "true"}, row.number("fa3_us"));
  if (table.column("cudnn_tflops") >= 0 && row.has("cudnn_tflops") && contains(table.id, "fwd")) {
    const std::int64_t d = row.whole("head_dim"), heads = 2048 / std::max<std::int64_t>(d, 1), batch = 16384 / seq;
    const bool causal = row.text("causal") == "true";
    const double flops = 4.0 * static_cast<double>(batch * heads * d) * static_cast<double>(seq) *
                         static_cast<double>(seq) * (causal ? 0.5 : 1.0);
    return set_attention(out, "cudnn", "fwd", {batch, heads, heads, seq, d, d, causal},
                         flops / row.number("cudnn_tflops") * 1e-6);
  }
  out.reason = "forward and backward in one figure, or a kernel without a curve";
}

void set_kda(PublishedRow& out, const char* kernel, std::int64_t tokens, std::int64_t heads, std::int64_t sequences,
             double us) {
  out.measurement = measurement({.section = "kda",
                                 .kernel = kernel,
                                 .pass = "fwd",
                                 .dtype = "bf16",
                                 .params = fmt::format("T={};H={};D=128;nseq={}", tokens, heads, sequences)},
                                us);
}

void read_kda(const KernelTable& table, const Row& row, PublishedRow& out) {
  const std::int64_t tokens = row.whole("tokens"), heads = row.whole("heads");
  if (table.column("flashkda_us") >= 0)
    return set_kda(out, "flash_kda", tokens, heads, row.whole("sequences"), row.number("flashkda_us"));
  if (table.column("flash_kda_ms") >= 0) {
    const std::string layout = row.text("case");
    const std::int64_t sequences = layout == "Fixed" ? 1 : contains(layout, "1024 x 8") ? 8 : 0;
    if (sequences == 0) return void(out.reason = "sequences of unequal length");
    return set_kda(out, "flash_kda", tokens, heads, sequences, 1e3 * row.number("flash_kda_ms"));
  }
  if (table.column("fla_ms") >= 0 && heads > 0)
    return set_kda(out, "fla_chunk_kda", tokens * row.whole("batch"), heads, row.whole("batch"),
                   1e3 * row.number("fla_ms"));
  out.reason = "a kernel without a curve";
}

// The same table's FLA column beside FlashKDA's.
void read_fla_column(const KernelTable& table, const Row& row, PublishedRow& out) {
  const std::string layout = row.text("case");
  const std::int64_t sequences = table.column("sequences") >= 0 ? row.whole("sequences")
                                 : layout == "Fixed"            ? 1
                                 : contains(layout, "1024 x 8") ? 8
                                                                : 0;
  const double us = row.has("fla_us") ? row.number("fla_us") : 1e3 * row.number("fla_chunk_kda_ms");
  if (sequences == 0) return void(out.reason = "sequences of unequal length");
  set_kda(out, "fla_chunk_kda", row.whole("tokens"), row.whole("heads"), sequences, us);
}

void finish(PublishedRow out, std::vector<PublishedRow>& rows) {
  if (out.reason.empty() && !(out.measurement.median_us > 0)) out.reason = "no time and no rate";
  if (out.reason.empty() && out.gpu.empty()) out.reason = "no profile of this GPU";
  rows.push_back(std::move(out));
}

}  // namespace

std::vector<PublishedRow> published_kernel_rows(const std::string& kernels_yaml) {
  std::vector<PublishedRow> rows;
  for (const KernelTable& table :
       load_kernel_tables(kernels_yaml, {"gemm", "grouped_gemm", "attention", "linear_attention"})) {
    const bool gemm = table.category == "gemm", grouped = table.category == "grouped_gemm",
               attention = table.category == "attention", kda = table.category == "linear_attention";
    if (!gemm && !grouped && !attention && !kda) continue;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const Row row(table, i);
      PublishedRow out;
      out.table = table.id;
      out.gpu = profile_of_hardware(table.hardware);
      PublishedRow second = out;
      if (gemm) read_gemm(table, row, out);
      if (grouped) read_grouped(table, row, out);
      if (attention) read_attention(table, row, out);
      if (kda) read_kda(table, row, out);
      finish(std::move(out), rows);
      if (table.column("fla_us") < 0 && table.column("fla_chunk_kda_ms") < 0) continue;
      read_fla_column(table, row, second);
      finish(std::move(second), rows);
    }
  }
  return rows;
}

}  // namespace k3sim
