// What a trace viewer shows of a simulation: processes (ranks) with threads (streams), slices on them, counters and
// arrows between slices. Plain data, filled once and written by chrome_json.h or perfetto_proto.h.
// Names are interned: slices carry numbers. Slices of one thread are added in the order of time and never overlap;
// times are shown in whole nanoseconds, rounded down, which keeps neighbours from overlapping.
// Source: Perfetto documentation (other-formats: slices on one thread must nest); engine-design section 12.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

using TraceName = std::uint32_t;  // index into Trace::names; 0 is the empty name

struct TraceThread {
  std::uint32_t process = 0;
  std::string name;
};

struct TraceCounter {
  std::uint32_t process = 0;
  std::string name, unit;
};

struct TraceSlice {
  Time start, finish;
  std::uint32_t thread = 0;
  TraceName name = 0, category = 0, detail = 0;
};

struct TraceSample {
  Time time;
  std::uint32_t counter = 0;
  double value = 0;
};

struct TraceFlow {                 // an arrow from one slice to a later one
  std::uint32_t from = 0, to = 0;  // indices into Trace::slices
  TraceName name = 0;
};

struct Trace {
  std::vector<std::string> processes;
  std::vector<TraceThread> threads;
  std::vector<TraceCounter> counters;
  std::vector<std::string> names{""};
  std::vector<TraceSlice> slices;
  std::vector<TraceSample> samples;
  std::vector<TraceFlow> flows;
  std::map<std::string, std::string> about;  // shown by viewers as metadata

  TraceName name(std::string_view text);
  std::uint32_t add_process(std::string text);
  std::uint32_t add_thread(std::uint32_t process, std::string text);
  std::uint32_t add_counter(std::uint32_t process, std::string text, std::string unit);

 private:
  std::map<std::string, TraceName, std::less<>> ids_{{"", 0}};
};

// Above this many slices viewers of the JSON form become slow (engine-design section 12).
inline constexpr std::size_t kMaxJsonSlices = 500'000;

inline std::int64_t trace_ns(Time t) {
  return t.picoseconds() / 1000;
}

// What is wrong with a trace, one sentence each: slices of a thread out of order or overlapping, arrows that go back in
// time, counters that do not end at the value they began with. Empty when all is well.
std::vector<std::string> trace_problems(const Trace& trace);

}  // namespace k3sim
