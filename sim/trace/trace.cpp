#include "sim/trace/trace.h"

#include <fmt/format.h>

#include <optional>

namespace k3sim {

TraceName Trace::name(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<TraceName>(names.size());
  names.emplace_back(text);
  ids_.emplace(std::string(text), id);
  return id;
}

std::uint32_t Trace::add_process(std::string text) {
  processes.push_back(std::move(text));
  return static_cast<std::uint32_t>(processes.size() - 1);
}

std::uint32_t Trace::add_thread(std::uint32_t process, std::string text) {
  threads.push_back({process, std::move(text)});
  return static_cast<std::uint32_t>(threads.size() - 1);
}

std::uint32_t Trace::add_counter(std::uint32_t process, std::string text, std::string unit) {
  counters.push_back({process, std::move(text), std::move(unit)});
  return static_cast<std::uint32_t>(counters.size() - 1);
}

namespace {

void check_slices(const Trace& trace, std::vector<std::string>& problems) {
  std::vector<Time> busy_until(trace.threads.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const TraceSlice& s = trace.slices[i];
    if (s.finish < s.start) problems.push_back(fmt::format("slice {} ends before it starts", i));
    if (s.start < busy_until[s.thread])
      problems.push_back(fmt::format("slice {} ({}) overlaps the one before it on thread '{}'", i, trace.names[s.name],
                                     trace.threads[s.thread].name));
    busy_until[s.thread] = std::max(busy_until[s.thread], s.finish);
  }
}

void check_flows(const Trace& trace, std::vector<std::string>& problems) {
  for (const TraceFlow& f : trace.flows)
    if (trace.slices[f.to].start < trace.slices[f.from].start)
      problems.push_back(fmt::format("arrow from slice {} to slice {} goes back in time", f.from, f.to));
}

void check_counters(const Trace& trace, std::vector<std::string>& problems) {
  struct Seen {
    double first = 0, last = 0;
    Time at;
    bool any = false;
  };
  std::vector<Seen> seen(trace.counters.size());
  for (const TraceSample& s : trace.samples) {
    Seen& c = seen[s.counter];
    if (!c.any) c.first = s.value;
    if (c.any && s.time < c.at)
      problems.push_back(fmt::format("counter '{}' goes back in time", trace.counters[s.counter].name));
    c.last = s.value;
    c.at = s.time;
    c.any = true;
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i].any && seen[i].first != seen[i].last)
      problems.push_back(
          fmt::format("counter '{}' began at {} and ends at {}", trace.counters[i].name, seen[i].first, seen[i].last));
}

}  // namespace

std::vector<std::string> trace_problems(const Trace& trace) {
  std::vector<std::string> problems;
  check_slices(trace, problems);
  check_flows(trace, problems);
  check_counters(trace, problems);
  return problems;
}

}  // namespace k3sim
