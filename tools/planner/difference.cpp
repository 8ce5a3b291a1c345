#include "tools/planner/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "models/build/memory_log.h"
#include "sim/graph/critical_path.h"
#include "tools/planner/evaluate.h"

namespace k3sim {

namespace {

void largest_first(std::vector<Difference>& list) {
  std::erase_if(list, [](const Difference& d) { return d.before == 0 && d.after == 0; });
  std::stable_sort(list.begin(), list.end(), [](const Difference& a, const Difference& b) {
    return std::abs(a.change()) > std::abs(b.change());
  });
}

enum class PathPart : std::uint8_t {
  slowest,
  recompute,
  other_stages,
  bubble,
  tp,
  cp,
  ep,
  pp,
  dp,
  optimizer,
  offload,
  host,
  end
};
constexpr const char* kPathParts[] = {"slowest stage",
                                      "recompute",
                                      "other stages",
                                      "bubble (fill and drain)",
                                      "exposed tp",
                                      "exposed cp",
                                      "exposed all-to-all (ep)",
                                      "pipeline transfers",
                                      "exposed dp",
                                      "optimizer",
                                      "offload stall",
                                      "host",
                                      "end of step"};
constexpr std::size_t kPathPartCount = std::size(kPathParts);

// Nothing for kernels: what they are depends on their rank.
std::optional<PathPart> part_of(StepTask kind) {
  switch (kind) {
    case StepTask::tp_comm:
      return PathPart::tp;
    case StepTask::cp_comm:
      return PathPart::cp;
    case StepTask::ep_comm:
      return PathPart::ep;
    case StepTask::transfer:
      return PathPart::pp;
    case StepTask::param_gather:
    case StepTask::grad_reduce:
      return PathPart::dp;
    case StepTask::optimizer:
      return PathPart::optimizer;
    case StepTask::offload:
    case StepTask::onload:
      return PathPart::offload;
    case StepTask::host:
      return PathPart::host;
    case StepTask::barrier:
    case StepTask::rendezvous:
      return PathPart::end;
    default:
      return std::nullopt;
  }
}

struct PathTimes {
  std::array<Time, kPathPartCount> parts{};
  int slowest = 0;
};

// Pipeline rank of every rank of the graph.
std::map<std::uint32_t, int> pipeline_ranks(const StepGraph& graph) {
  std::map<std::uint32_t, int> out;
  for (std::size_t r = 0; r < graph.compute_stream.size(); ++r)
    for (const StreamId s : graph.compute_stream[r]) out[graph.built.graph.info(s).rank.value] = static_cast<int>(r);
  return out;
}

PathTimes path_times(const StepPrediction& p) {
  PathTimes out;
  if (!p.graph || !p.times) return out;
  const TaskGraph& g = p.graph->built.graph;
  const std::map<std::uint32_t, int> rank_of = pipeline_ranks(*p.graph);
  const CriticalPath path = critical_path(g, *p.times);
  struct Piece {
    Time time;
    int rank;
    StepTask kind;
  };
  std::vector<Piece> pieces;
  std::map<int, Time> busy;
  for (const TaskId t : path.tasks) {
    const auto found = rank_of.find(g.info(g.stream(t)).rank.value);
    pieces.push_back({p.times->finish[t.value] - p.times->start[t.value], found == rank_of.end() ? -1 : found->second,
                      static_cast<StepTask>(g.kind(t))});
    if (!part_of(pieces.back().kind)) busy[pieces.back().rank] += pieces.back().time;
  }
  for (const auto& [rank, time] : busy)
    if (time > busy[out.slowest]) out.slowest = rank;
  const auto own = [&](const Piece& x) { return x.rank == out.slowest && !part_of(x.kind); };
  const auto first = std::find_if(pieces.begin(), pieces.end(), own);
  const auto last = std::find_if(pieces.rbegin(), pieces.rend(), own).base();
  for (auto x = pieces.begin(); x != pieces.end(); ++x) {
    PathPart part = x < first || x >= last ? PathPart::bubble : PathPart::other_stages;
    if (x->rank == out.slowest) part = x->kind == StepTask::recompute ? PathPart::recompute : PathPart::slowest;
    out.parts[static_cast<std::size_t>(part_of(x->kind).value_or(part))] += x->time;
  }
  // Steps that follow each other staggered end earlier for each rank than the whole: the period counts.
  out.parts[static_cast<std::size_t>(PathPart::end)] += p.summary.step - p.times->makespan;
  return out;
}

const RankMemory& fullest(const StepPrediction& p) {
  return *std::max_element(p.memory.begin(), p.memory.end(), [](const RankMemory& a, const RankMemory& b) {
    return a.reserved + a.outside < b.reserved + b.outside;
  });
}

std::vector<Difference> memory_parts(const RankMemory& a, const RankMemory& b) {
  std::vector<Difference> out;
  const auto add = [&](const char* part, Bytes before, Bytes after) {
    out.push_back({part, before.gibibytes(), after.gibibytes()});
  };
  add("weights", a.states.weights, b.states.weights);
  add("gradients", a.states.gradients, b.states.gradients);
  add("optimizer states", a.states.optimizer, b.states.optimizer);
  add("kept activations", a.activations, b.activations);
  add("transient tensors", a.transient, b.transient);
  add("staging buffers", a.staging, b.staging);
  add("outside the allocator", a.outside, b.outside);
  const auto rest = [](const RankMemory& m) {
    return (m.reserved + m.outside - m.states.gpu() - m.activations - m.transient - m.staging - m.outside);
  };
  add("allocator overhead", rest(a), rest(b));
  return out;
}

// "layer 12 expert_up of micro-batch 3" and "stage 0 weights" by what they are.
std::string owner_of(const std::string& what) {
  std::string out = what.substr(0, what.find(" of micro-batch"));
  for (const char* place : {"layer ", "stage "})
    if (out.starts_with(place)) out = out.substr(out.find(' ', std::strlen(place)) + 1);
  return out;
}

void add_owner(MemoryOwners& owners, const std::string& name, double gib) {
  const auto found = std::find_if(owners.begin(), owners.end(), [&](const auto& o) { return o.first == name; });
  if (found == owners.end())
    owners.emplace_back(name, gib);
  else
    found->second += gib;
}

std::vector<Difference> owner_parts(const MemoryOwners& a, const MemoryOwners& b) {
  std::vector<Difference> out;
  const auto part = [&](const std::string& name) -> Difference& {
    const auto found = std::find_if(out.begin(), out.end(), [&](const Difference& d) { return d.part == name; });
    return found == out.end() ? out.emplace_back(Difference{name, 0, 0}) : *found;
  };
  for (const auto& [name, gib] : a) part(name).before = gib;
  for (const auto& [name, gib] : b) part(name).after = gib;
  return out;
}

}  // namespace

MemoryOwners memory_owners(const StepPrediction& p, const Machine& machine) {
  const RankMemory& rank = fullest(p);
  const MemoryReport r = rank_memory_report(*p.plan, machine, rank.rank);
  MemoryOwners out;
  double rest = (rank.reserved + rank.outside).gibibytes();
  std::array<double, kMemoryCategories> named{};
  for (const LivePart& part : r.at_peak) {
    add_owner(out, owner_of(part.what), part.bytes.gibibytes());
    named[static_cast<std::size_t>(part.category)] += part.bytes.gibibytes();
    rest -= part.bytes.gibibytes();
  }
  for (std::size_t c = 0; c < named.size(); ++c) {
    const double others = r.timeline.breakdown[c].at_peak.gibibytes() - named[c];
    if (others > 0) add_owner(out, fmt::format("other {}", to_string(static_cast<MemoryCategory>(c))), others);
    rest -= others;
  }
  for (const OutsidePart& part : outside_parts(*p.plan, machine)) {
    add_owner(out, part.what, part.bytes.gibibytes());
    rest -= part.bytes.gibibytes();
  }
  // A log that runs out of memory ends before its peak.
  add_owner(out, r.out_of_memory ? "allocator overhead and what did not fit" : "allocator overhead", rest);
  return out;
}

StepDifference difference(const StepPrediction& before, const StepPrediction& after, const MemoryOwners& owners_before,
                          const MemoryOwners& owners_after) {
  StepDifference d;
  d.step_before = before.summary.step.seconds();
  d.step_after = after.summary.step.seconds();
  const std::pair<const char*, Time RankBreakdown::*> parts[] = {{"compute", &RankBreakdown::compute},
                                                                 {"recompute", &RankBreakdown::recompute},
                                                                 {"optimizer", &RankBreakdown::optimizer},
                                                                 {"exposed tp", &RankBreakdown::tp},
                                                                 {"exposed cp", &RankBreakdown::cp},
                                                                 {"exposed all-to-all (ep)", &RankBreakdown::ep},
                                                                 {"pipeline transfers", &RankBreakdown::pp},
                                                                 {"exposed dp", &RankBreakdown::dp},
                                                                 {"offload stall", &RankBreakdown::offload},
                                                                 {"vision encoder", &RankBreakdown::vision},
                                                                 {"bubble and slower stages", &RankBreakdown::bubble},
                                                                 {"host", &RankBreakdown::host},
                                                                 {"end of step", &RankBreakdown::wait}};
  for (const auto& [name, field] : parts)
    d.time.push_back({name, (before.summary.mean.*field).seconds(), (after.summary.mean.*field).seconds()});
  const PathTimes a = path_times(before), b = path_times(after);
  d.slowest_before = a.slowest;
  d.slowest_after = b.slowest;
  for (std::size_t k = 0; k < kPathPartCount; ++k)
    d.critical.push_back({kPathParts[k], a.parts[k].seconds(), b.parts[k].seconds()});
  d.memory =
      owners_before.empty() ? memory_parts(fullest(before), fullest(after)) : owner_parts(owners_before, owners_after);
  for (std::vector<Difference>* list : {&d.time, &d.critical, &d.memory}) largest_first(*list);
  return d;
}

CsvTable difference_table(const StepDifference& d) {
  CsvTable out({{"what", "text", "step, time (mean rank), critical path or memory (fullest rank)"},
                {"part", "text", "part of it"},
                {"before_s", "s", "time in the first prediction"},
                {"after_s", "s", "time in the second one"},
                {"change_s", "s", "second minus first"},
                {"before_gib", "GiB", "memory in the first prediction"},
                {"after_gib", "GiB", "memory in the second one"},
                {"change_gib", "GiB", "second minus first"}});
  const auto rows = [&](const char* what, bool memory, const std::vector<Difference>& list) {
    for (const Difference& x : list) {
      std::vector<std::string> cells{what, x.part, "", "", "", "", "", ""};
      std::size_t at = memory ? 5 : 2;
      for (const double v : {x.before, x.after, x.change()}) cells[at++] = csv_number(v);
      out.add(std::move(cells));
    }
  };
  rows("step", false, {{"step", d.step_before, d.step_after}});
  rows("time", false, d.time);
  rows("critical path", false, d.critical);
  rows("memory", true, d.memory);
  return out;
}

}  // namespace k3sim
