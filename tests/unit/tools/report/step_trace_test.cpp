// The trace and the report of a real step: nothing overlaps, nothing is lost, and the views agree with the breakdown.
#include "tools/report/step_trace.h"
#include "tools/report/activation_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "../../sim/trace/perfetto_reader.h"
#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "sim/trace/perfetto_proto.h"
#include "tools/report/run_report.h"
#include "tools/report/run_tables.h"
#include "tools/report/step_view.h"
#include "tools/report/summary_json.h"
#include "tools/report/text_summary.h"

using namespace k3sim;

namespace {

// A short step of the shipped scenario: 32 instead of 64 micro-batches.
const Scenario& scenario() {
  static const Scenario s = load_scenario("k3_2048_h800", {"batch.global_tokens=33554432"});
  return s;
}

const StepPrediction& prediction() {
  static const StepPrediction p = [] {
    StepOptions o;
    o.keep_graph = true;
    o.graph.detail = StepGraphOptions::Detail::kernel;
    return predict_step(scenario(), load_machine(scenario()), o);
  }();
  return p;
}

}  // namespace

TEST_CASE("step_trace: slices of a thread do not overlap, arrows point forward, counters return to their start") {
  const Trace t = step_trace(prediction(), {});
  CHECK(trace_problems(t).empty());
  CHECK(t.processes.size() == prediction().ranks.size());
  CHECK(t.flows.size() >= 30 * prediction().ranks.size());
  for (const TraceFlow& f : t.flows)
    CHECK(t.threads[t.slices[f.from].thread].process != t.threads[t.slices[f.to].thread].process);
}

TEST_CASE("step_trace: without kernels arrows end at the actions that waited") {
  const Trace t = step_trace(prediction(), {.ranks = {}, .kernels = false});
  CHECK(trace_problems(t).empty());
  CHECK(t.slices.size() < step_trace(prediction(), {}).slices.size() / 10);
  CHECK(t.flows.size() >= 30 * prediction().ranks.size());
}

TEST_CASE("perfetto_proto: a whole step passes the strict reader, no slice overlaps, counters end where they began") {
  const Trace t = step_trace(prediction(), {});
  REQUIRE(t.slices.size() > 200'000);
  const PerfettoReader r(perfetto_proto(t));
  CHECK(r.slices.size() == t.slices.size());
  CHECK(r.tracks.size() == t.processes.size() + t.threads.size() + t.counters.size());
  std::set<std::string> counters;
  for (const auto& [track, values] : r.counters) {
    CHECK(values.front() == values.back());
    counters.insert(r.tracks.at(track));
  }
  CHECK(counters.size() == 3);  // memory, NIC load, NVLink load
  std::size_t ends = 0;
  for (const PerfettoSlice& s : r.slices) ends += s.flows.size();
  CHECK(ends == 2 * t.flows.size());
}

TEST_CASE("expected_slices: says at least what the trace then has, and grows with the ranks") {
  const double one = expected_slices(prediction(), {.ranks = {0}, .kernels = true});
  CHECK(one >= static_cast<double>(step_trace(prediction(), {.ranks = {0}, .kernels = true}).slices.size()) * 0.9);
  CHECK(expected_slices(prediction(), {.ranks = {0, 1, 2}, .kernels = true}) == doctest::Approx(3 * one));
  std::vector<int> all(2048);
  CHECK(expected_slices(prediction(), {.ranks = all, .kernels = true}) > kMaxSlices);
}

TEST_CASE("step_trace: a list of ranks shows those ranks, with the times of their representatives") {
  const Trace t = step_trace(prediction(), {.ranks = {3, 128, 131}, .kernels = false});
  REQUIRE(t.processes.size() == 3);
  CHECK(t.processes[0] == "rank 3 (stage 0), like rank 0");
  CHECK(t.processes[1] == "rank 128 (stage 1)");
  CHECK(trace_problems(t).empty());
  std::map<std::uint32_t, std::size_t> slices;
  for (const TraceSlice& s : t.slices) ++slices[t.threads[s.thread].process];
  CHECK(slices[1] == slices[2]);
  for (const TraceFlow& f : t.flows) {  // ranks 3 and 131 are neighbours in the pipeline, 3 and 128 are not
    CHECK(t.threads[t.slices[f.from].thread].process != 1);
    CHECK(t.threads[t.slices[f.to].thread].process != 1);
  }
}

TEST_CASE("step_view: bars and gaps of a rank do not overlap, and their idle time is the breakdown's") {
  const StepPrediction& p = prediction();
  const std::vector<RankView> views = step_view(p);
  REQUIRE(views.size() == p.ranks.size());
  for (std::size_t r = 0; r < views.size(); ++r) {
    std::map<int, Time> idle;
    Time end;
    for (const ActionBar& b : views[r].bars) {
      CHECK(b.start >= end);
      end = b.finish;
      for (const auto& [cause, time] : b.idle) idle[cause] += time;
    }
    for (const IdleGap& g : views[r].gaps) idle[g.cause] += g.finish - g.start;
    for (std::size_t c = 0; c < breakdown_parts().size(); ++c) {
      const std::string key = breakdown_parts()[c].key;
      if (key == "bubble" || key == "ep" || key == "offload")
        CHECK(idle[static_cast<int>(c)] == p.ranks[r].*breakdown_parts()[c].field);
    }
  }
}

TEST_CASE("memory_parts: the parts on the GPU add up to what the rank holds") {
  for (const RankMemory& m : prediction().memory) {
    Bytes sum;
    for (const MemoryPart& part : memory_parts(m))
      if (!part.host) sum += part.bytes;
    CHECK(sum == m.reserved + m.outside);
  }
}

TEST_CASE("memory over time: no category is ever negative, together they stay below the peak and return to the start") {
  const auto sum = [](const MemoryStep& s) {
    Bytes all;
    for (const Bytes b : s.live) all += b;
    return all;
  };
  const StepPrediction& p = prediction();
  REQUIRE(p.memory_over_time.size() == p.ranks.size());
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    Bytes most;
    for (const MemoryStep& s : p.memory_over_time[r]) {
      for (const Bytes b : s.live) REQUIRE(b >= Bytes(0));
      REQUIRE(sum(s) <= s.peak);
      most = std::max(most, s.peak);
    }
    const MemoryStep& last = p.memory_over_time[r].back();
    CHECK(last.live[static_cast<std::size_t>(MemoryCategory::activations)] == Bytes(0));
    CHECK(last.live[static_cast<std::size_t>(MemoryCategory::activation_gradients)] == Bytes(0));
    CHECK(most <= p.memory[r].allocated);
  }
}

TEST_CASE("activation_table: every stage has every tensor of its layers, with the treatment of the scenario's policy") {
  const CsvTable table = activation_table(prediction());
  std::set<std::string> stages, treatments;
  for (const auto& row : table.rows()) {
    stages.insert(row[1]);
    treatments.insert(row[6]);
    if (row[4] == "moe.expert_up") CHECK(row[6] == "fp8+offload");
    if (row[4] == "moe.dispatched") CHECK(row[6] == "recompute");
  }
  CHECK(stages.size() == 32);
  CHECK(treatments == std::set<std::string>{"fp8+offload", "offload", "recompute"});
}

TEST_CASE("run_report: the page names its answer, its assumptions and how to repeat it") {
  const std::string data = run_report({scenario(), prediction(), "k3sim run k3_2048_h800"}).data();
  for (const char* must :
       {"\"type\":\"timeline\"", "\"type\":\"memory\"", "\"type\":\"waterfall\"", "causal attention at half",
        "Folded dimensions: ep, dp", "k3sim run k3_2048_h800", "\"key\":\"goodput_pct\""})
    CHECK_MESSAGE(data.find(must) != std::string::npos, must);
  CHECK(data.find("\"id\":\"sensitivity\"") == std::string::npos);
  PageDeltas inputs;
  inputs.table = {"sensitivity", "caption", "prediction", {}, {}};
  inputs.unit = "%";
  inputs.rows = {{"NIC bandwidth", 1.5, -1.2}};
  const std::string more = run_report({scenario(), prediction(), "k3sim run", nullptr, inputs}).data();
  CHECK(more.find("\"id\":\"sensitivity\"") != std::string::npos);
}

TEST_CASE("text_summary: under 40 lines, colours only when asked for") {
  const std::string plain = text_summary(scenario(), prediction(), false),
                    colour = text_summary(scenario(), prediction(), true);
  CHECK(std::count(plain.begin(), plain.end(), '\n') < 40);
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(colour.find('\x1b') != std::string::npos);
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = plain.find('\n', at);
    CHECK(end - at < 320);  // bytes; a full bar is 40 three-byte characters
    at = end + 1;
  }
}
