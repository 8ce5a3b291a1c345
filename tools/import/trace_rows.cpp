// Source: see trace_rows.h.
#include "tools/import/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/build/step_plan.h"
#include "models/transformer/layers.h"
#include "tools/import/trace_comparison.h"

namespace k3sim {
namespace {

struct Timed {
  KernelId id;
  std::vector<double> us;
};

Measurement measurement_of(Timed t) {
  std::sort(t.us.begin(), t.us.end());
  const auto at = [&](double q) { return t.us[static_cast<std::size_t>(q * static_cast<double>(t.us.size() - 1))]; };
  return {t.id, at(0.5), at(0.2), at(0.8), static_cast<int>(t.us.size())};
}

std::string dtype_of(const std::string& kernel, const std::string& type) {
  if (kernel.find("fp8") != std::string::npos || type.find("Float8") != std::string::npos) return "fp8_block";
  if (type == "c10::Half") return "fp16";
  return type == "float" ? "fp32" : "bf16";
}

std::optional<KernelId> id_of_kernel(const Kernel& k, const std::string& name, const std::string& dtype) {
  const char* pass = k.pass == Pass::forward ? "fwd" : k.pass == Pass::weight_grad ? "wgrad" : "dgrad";
  KernelId id{"", "trace_" + name, pass, dtype, "", k.flops.value(), k.bytes.as_double()};
  if (k.family == KernelFamily::gemm) {
    id.section = "gemm";
    id.params = fmt::format("M={};N={};K={}", k.m, k.n, k.k);
  } else if (k.family == KernelFamily::grouped_gemm) {
    id.section = "grouped";
    id.params = fmt::format("G={};tokens={};N={};K={}", k.groups, k.m, k.n, k.k);
  } else if (k.family == KernelFamily::attention) {
    id.section = "attn";
    id.kernel = "trace_fa3_" + name;
    id.pass = k.pass == Pass::forward ? "fwd" : "bwd";
    id.dtype = "bf16";
    id.params = fmt::format("B={};H={};Hkv={};S={};dqk={};dv={};causal={}", k.batch, k.heads, k.kv_heads, k.seq_q,
                            k.dim_qk, k.dim_v, k.causal ? 1 : 0);
  } else {
    return std::nullopt;
  }
  return id;
}

using Dims = std::vector<std::vector<std::int64_t>>;

Dims dims_of(const std::string& text) {
  Dims out;
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_array()) return out;
  for (const nlohmann::json& tensor : j) {
    out.emplace_back();
    if (!tensor.is_array()) continue;
    for (const nlohmann::json& d : tensor)
      if (d.is_number_integer()) out.back().push_back(d.get<std::int64_t>());
  }
  return out;
}

// Products are described as the forward product of the two operands, whatever pass they belong to.
std::optional<Kernel> kernel_of_shapes(const std::string& op, const Dims& d) {
  const auto matrix = [&](std::size_t a) {
    return d.size() > a + 1 && d[a].size() == 2 && d[a + 1].size() == 2 && d[a][1] == d[a + 1][0];
  };
  const std::size_t first = op == "aten::addmm" ? 1 : 0;
  if ((op == "aten::mm" || op == "aten::addmm" || op == "aten::_scaled_mm") && matrix(first))
    return gemm_kernel("mm", Pass::forward, Dtype::bf16, d[first][0], d[first + 1][1], d[first][1]);
  if (op == "aten::_grouped_mm" && d.size() > 1 && d[0].size() == 2 && d[1].size() == 3 && d[0][1] == d[1][1])
    return grouped_gemm_kernel("grouped_mm", Pass::forward, Dtype::bf16, d[1][0], d[0][0], d[1][2], d[1][1]);
  const bool attention =
      op == "aten::_scaled_dot_product_flash_attention" || op == "aten::_scaled_dot_product_cudnn_attention";
  if (attention && d.size() > 2 && d[0].size() == 4 && d[1].size() == 4 && d[2].size() == 4)
    return attention_kernel("sdpa", Pass::forward,
                            {.batch = d[0][0],
                             .heads = d[0][1],
                             .kv_heads = d[1][1],
                             .seq_q = d[0][2],
                             .seq_k = d[1][2],
                             .dim_qk = d[0][3],
                             .dim_v = d[2][3]});
  return std::nullopt;
}

// One row per shape; small helpers of an operation (split-K sums, casts) are too short to be its product.
void add_recorded_shapes(const KinetoTrace& trace, TraceRows& out) {
  std::map<std::string, Timed> rows;
  for (const GpuEvent& e : trace.events) {
    if (e.operation < 0) continue;
    const ShapedOperation& op = trace.operations[static_cast<std::size_t>(e.operation)];
    const auto name = [&](std::int32_t i) -> const std::string& { return trace.names[static_cast<std::size_t>(i)]; };
    const TraceFamily family = family_of_kernel(trace.name_of(e));
    const bool product = family == TraceFamily::gemm || family == TraceFamily::weight_grad ||
                         family == TraceFamily::grouped_gemm || family == TraceFamily::attention;
    if (!product || trace.name_of(e).find("splitKreduce") != std::string::npos) continue;
    const std::optional<Kernel> kernel = kernel_of_shapes(name(op.name), dims_of(name(op.dims)));
    if (!kernel) continue;
    std::optional<KernelId> id = id_of_kernel(*kernel, kernel->name, dtype_of(trace.name_of(e), name(op.type)));
    if (!id) continue;
    Timed& t = rows[id->key()];
    t.id = *id;
    t.us.push_back(static_cast<double>(e.end_ns - e.start_ns) * 1e-3);
  }
  for (auto& [key, t] : rows) out.rows.push_back(measurement_of(std::move(t)));
}

// Kernels of one family in one run of one action; FP8 and wider products apart.
struct Bucket {
  std::string action, family;
  bool fp8 = false;
  auto operator<=>(const Bucket&) const = default;
};

struct Expected {
  double us = 0;
  Kernel kernel;
  std::string name;
};

bool is_product(TraceFamily f) {
  return f == TraceFamily::gemm || f == TraceFamily::weight_grad || f == TraceFamily::grouped_gemm ||
         f == TraceFamily::attention;
}

// Shapes of the predicted kernels of one layer, by the names and passes that its timed items carry.
std::map<Bucket, std::vector<Expected>> expected_kernels(const Scenario& scenario, const Machine& machine, int rank) {
  const StepPlan plan = make_step_plan(scenario, machine);
  const PredictedTrace one = predict_trace(scenario, machine, TraceUnit::pair, rank);
  std::map<std::pair<std::string, Pass>, Kernel> shapes;
  for (std::size_t l = 0; l < plan.scenario.model.layers.size(); ++l) {
    const LayerProgram program = layer_program(plan.scenario.model, l, plan.split);
    for (const auto* list : {&program.forward, &program.backward})
      for (const Item& i : *list)
        if (!i.is_comm) shapes.try_emplace({i.name, i.kernel.pass}, i.kernel);
  }
  std::map<Bucket, std::vector<Expected>> out;
  for (const PredictedWork& w : one.work) {
    if (!is_product(w.time.family)) continue;
    const auto it = shapes.find({w.name, w.pass});
    if (it == shapes.end()) continue;
    const Bucket b{w.action, to_string(w.time.family), is_fp8(it->second.dtype)};
    out[b].push_back({static_cast<double>(w.time.end_ns - w.time.start_ns) * 1e-3, it->second, w.name});
  }
  for (auto& [bucket, list] : out) {
    std::stable_sort(list.begin(), list.end(), [](const Expected& a, const Expected& b) { return a.us < b.us; });
    // One layer: every n-th of the sorted list, as all layers of the pair are alike.
    const auto layers = static_cast<std::size_t>(std::max(1, one.layers));
    std::vector<Expected> layer;
    for (std::size_t i = 0; i < list.size(); i += layers) layer.push_back(list[i]);
    list = std::move(layer);
  }
  return out;
}

std::map<Bucket, std::vector<std::vector<double>>> measured_kernels(const KinetoTrace& trace) {
  const std::vector<ActionKernel> kernels = kernels_by_action(trace);
  std::map<std::pair<Bucket, std::int32_t>, std::vector<double>> runs;  // by run of the action
  for (const ActionKernel& k : kernels)
    if (is_product(k.family)) {
      const bool fp8 = trace.name_of(*k.event).find("fp8") != std::string::npos;
      runs[{{trace.names[static_cast<std::size_t>(k.action)], to_string(k.family), fp8}, k.run}].push_back(
          static_cast<double>(k.event->end_ns - k.event->start_ns) * 1e-3);
    }
  std::map<Bucket, std::vector<std::vector<double>>> out;
  for (auto& [key, times] : runs) {
    std::sort(times.begin(), times.end());
    out[key.first].push_back(std::move(times));
  }
  return out;
}

void add_paired(const KinetoTrace& trace, const Scenario& scenario, const Machine& machine, int rank, TraceRows& out) {
  const auto expected = expected_kernels(scenario, machine, rank);
  for (const auto& [bucket, runs] : measured_kernels(trace)) {
    const std::string where = fmt::format("{} {}{}", bucket.action, bucket.fp8 ? "FP8 " : "", bucket.family);
    const auto it = expected.find(bucket);
    if (it == expected.end()) {
      out.skipped.push_back(where + ": nothing like it is predicted");
      continue;
    }
    const std::vector<Expected>& kernels = it->second;
    const bool whole = kernels.size() == 1;  // several kernels make one predicted one
    const bool equal = std::all_of(runs.begin(), runs.end(), [&](const auto& r) { return r.size() == kernels.size(); });
    if (!whole && !equal) {
      out.skipped.push_back(fmt::format("{}: {} kernels, {} predicted", where, runs.front().size(), kernels.size()));
      continue;
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      Timed t;
      const auto id = id_of_kernel(kernels[i].kernel, kernels[i].name, bucket.fp8 ? "fp8_block" : "bf16");
      if (!id) continue;
      t.id = *id;
      for (const std::vector<double>& run : runs) {
        double us = whole ? 0 : run[i];
        if (whole)
          for (double x : run) us += x;
        t.us.push_back(us);
      }
      out.rows.push_back(measurement_of(std::move(t)));
    }
  }
}

}  // namespace

TraceRows rows_of_trace(const KinetoTrace& trace, const std::string& file, const Scenario* scenario,
                        const Machine* machine, int rank) {
  TraceRows out;
  out.header = {fmt::format("gpu: {}", trace.gpu_name.empty() ? "unknown" : trace.gpu_name),
                "software: profiler trace " + file.substr(file.find_last_of('/') + 1),
                "method: kernels inside a training run, beside communication; median over the layers of the trace"};
  add_recorded_shapes(trace, out);
  if (scenario && machine) add_paired(trace, *scenario, *machine, rank, out);
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const Measurement& a, const Measurement& b) { return a.id.key() < b.id.key(); });
  return out;
}

}  // namespace k3sim
