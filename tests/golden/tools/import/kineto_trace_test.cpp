// DeepSeek-V3's public training profile: what was measured, and that damage does not matter more than it must.
#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/base/error.h"
#include "tools/import/trace_comparison.h"

using namespace k3sim;

namespace {

const std::string kTrace = std::string(K3SIM_TEST_DATA) + "/kineto/deepseek_v3_train.json.gz";

std::string unpacked() {
  std::string text(4 << 20, '\0');
  const gzFile in = gzopen(kTrace.c_str(), "rb");
  text.resize(static_cast<std::size_t>(gzread(in, text.data(), static_cast<unsigned>(text.size()))));
  gzclose(in);
  return text;
}

std::string temporary(const std::string& content) {
  const std::string path = (std::filesystem::temp_directory_path() / "k3sim_kineto_test.json").string();
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

double busy_ms(const TraceComparison& c, const char* stream) {
  for (const ComparisonRow& r : c.streams)
    if (r.name == stream) return r.measured_ms;
  return 0;
}

}  // namespace

TEST_CASE("DeepSeek-V3 trace: stream busy times and span as published beside it") {
  const TraceComparison c = compare_trace(load_kineto(kTrace), nullptr, -1);
  CHECK(busy_ms(c, "compute") == doctest::Approx(118).epsilon(0.02));
  CHECK(busy_ms(c, "communication") == doctest::Approx(115).epsilon(0.02));
  CHECK(busy_ms(c, "side") == doctest::Approx(11.355).epsilon(0.001));  // weight gradients, printed as 11 ms
  CHECK(c.measured_span_ms == doctest::Approx(129).epsilon(0.001));
  CHECK(c.covered_pct >= 97);
}

TEST_CASE("DeepSeek-V3 trace: the temporal breakdown adds up to the span") {
  const DeviceTime d = compare_trace(load_kineto(kTrace), nullptr, -1).measured.devices.at(0);
  CHECK(d.compute_ns + d.communication_ns + d.memory_ns + d.idle_ns == d.span_ns);
  CHECK(d.overlapped_ns + d.communication_ns == d.communication_total_ns);
  CHECK(d.overlap_pct() > 95);
}

TEST_CASE("DeepSeek-V3 trace: header, kernels and launches are read") {
  const KinetoTrace t = load_kineto(kTrace);
  CHECK(t.gpu_name == "NVIDIA H800");
  CHECK(t.world_size == 64);
  CHECK(t.events.size() == 983);
  CHECK_FALSE(t.truncated);
  std::size_t launched = 0;
  for (const GpuEvent& e : t.events) launched += e.launched_ns >= 0 ? 1 : 0;
  CHECK(launched > 970);
  bool attention = false;
  for (const ComparisonRow& r : compare_trace(t, nullptr, -1).actions) attention = attention || r.name == "attn(F)";
  CHECK(attention);
}

TEST_CASE("a trace cut anywhere is used up to the cut") {
  const std::string text = unpacked();
  std::size_t before = 0;
  for (std::size_t cut : {text.size() / 3, text.size() / 2, text.size() - 3}) {
    const KinetoTrace t = load_kineto(temporary(text.substr(0, cut)));
    CHECK(t.truncated);
    CHECK(t.events.size() >= before);
    before = t.events.size();
  }
  CHECK(before == 983);
}

TEST_CASE("files that are no trace are refused") {
  CHECK_THROWS_AS(load_kineto("/nonexistent/trace.json"), ConfigError);
  CHECK_THROWS_AS(load_kineto(temporary("")), ConfigError);
  CHECK_THROWS_AS(load_kineto(temporary("{\"traceEvents\": []}")), ConfigError);
  CHECK_THROWS_AS(load_kineto(temporary("GIF89a")), ConfigError);
}

TEST_CASE("several GPUs in one trace are kept apart, NCCL's metadata names the collective") {
  const std::string event =
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_bf16\",\"pid\":%d,\"tid\":7,\"ts\":%d.5,"
      "\"dur\":2.25,\"args\":{\"device\":%d,\"stream\":7,\"Collective name\":\"allreduce\",\"In msg nelems\":1024,"
      "\"dtype\":\"BFloat16\",\"Group size\":8}}";
  char a[512], b[512];
  std::snprintf(a, sizeof a, event.c_str(), 0, 100, 0);
  std::snprintf(b, sizeof b, event.c_str(), 1, 200, 1);
  const KinetoTrace t = load_kineto(temporary(std::string("[") + a + "," + b + "]"));
  REQUIRE(t.events.size() == 2);
  CHECK(t.events[0].message_bytes == 2048);
  CHECK(t.events[0].end_ns - t.events[0].start_ns == 2250);
  CHECK(compare_trace(t, nullptr, 1).collectives.at(0).name == "allreduce x8");
  CHECK(compare_trace(t, nullptr, 1).measured.devices.at(0).device == 1);
}
