// Bytes per second of reading a profiler trace, and the memory that stays: a generated file of 300 MB with eight GPUs,
// host operations, launches and NCCL metadata, as a PyTorch profiler writes them. Bar: 300 MB in 20 s (one core).
// Source: issue 11; engine-design section 13.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/bench/bench_report.h"
#include "tools/import/trace_comparison.h"

namespace k3sim::bench {
namespace {

constexpr std::size_t kTraceBytes = 300'000'000;

std::string one_launch(std::int64_t i) {
  const std::int64_t at = 1'740'000'000'000'000 + 12 * i, device = i % 8, id = i + 1;
  const bool comm = i % 16 == 0;
  std::string text = fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"aten::op_{}","pid":100,"tid":100,"ts":{},"dur":8,"args":{{"External id":{},"Ev Idx":{},"Input Dims":[[4096,7168],[7168,{}]],"Input type":["c10::BFloat16","c10::BFloat16"]}}}},
)",
      i % 40, at, id, i, 64 + i % 40);
  text += fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":{},"dur":3,"args":{{"External id":{},"cbid":211,"correlation":{}}}}},
{{"ph":"s","id":{},"pid":100,"tid":100,"ts":{},"cat":"ac2g","name":"ac2g"}},
)",
      at + 2, id, id, id, at + 2);
  text += fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}_{}","pid":{},"tid":{},"ts":{},"dur":9.5,"args":{{"External id":{},"queued":0,"device":{},"context":1,"stream":{},"correlation":{},"registers per thread":168,"shared memory":213,"blocks per SM":1,"warps per SM":4,"grid":[132,1,1],"block":[128,1,1]{}}}}},
)",
      comm ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" : "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize", i % 30,
      device, comm ? 20 : 7, at + 5, id, device, comm ? 20 : 7, id,
      comm ? R"(,"Collective name":"allreduce","In msg nelems":1048576,"dtype":"BFloat16","Group size":8)" : "");
  return text;
}

std::string generated_trace() {
  const std::string path = (std::filesystem::temp_directory_path() / "k3sim_kineto_bench.json").string();
  std::FILE* out = std::fopen(path.c_str(), "wb");
  std::fputs("{\"schemaVersion\":1,\"traceEvents\":[\n", out);
  std::size_t bytes = 0;
  for (std::int64_t i = 0; bytes < kTraceBytes; ++i) {
    const std::string text = one_launch(i);
    bytes += text.size();
    std::fwrite(text.data(), 1, text.size(), out);
  }
  std::fputs("{\"ph\":\"M\",\"name\":\"end\",\"pid\":0,\"tid\":0,\"ts\":0,\"args\":{}}]}\n", out);
  std::fclose(out);
  return path;
}

void kineto_trace_of_300_mb(benchmark::State& state) {
  const std::string path = generated_trace();
  std::size_t kernels = 0;
  for (auto _ : state) {
    const KinetoTrace trace = load_kineto(path);
    const TraceComparison c = compare_trace(trace, nullptr, -1);
    kernels = trace.events.size();
    benchmark::DoNotOptimize(c.covered_pct);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["kernels"] = static_cast<double>(kernels);
  state.counters["peak_mb"] = static_cast<double>(usage.ru_maxrss) / 1024;
  report_rate(state, "bytes/s", kTraceBytes, static_cast<double>(kTraceBytes) / 20);
  std::filesystem::remove(path);
}
BENCHMARK(kineto_trace_of_300_mb)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace k3sim::bench
