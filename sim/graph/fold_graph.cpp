// The quotient of a task graph by a folding. It is acyclic whenever the full graph is: a cycle of classes could be
// followed backwards through members of those classes for ever, and the full graph is finite. Source: engine-design
// notes section 7.
#include "sim/graph/fold_graph.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace k3sim {

namespace {

// Which rank each stream and task belongs to and at which place of the rank's own numbering.
struct Places {
  std::vector<std::uint32_t> rank_of_stream;
  std::vector<std::uint32_t> place_of_stream;
  std::vector<std::uint32_t> place_of_task;
  std::vector<std::vector<TaskId>> tasks;  // by rank and place
};

Places places_of(const TaskGraph& g) {
  Places p;
  std::uint32_t ranks = 0;
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    const RankId rank = g.info(StreamId(s)).rank;
    if (rank.valid()) ranks = std::max(ranks, rank.value + 1);
  }
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    const RankId rank = g.info(StreamId(s)).rank;
    p.rank_of_stream.push_back(rank.valid() ? rank.value : ranks++);
  }
  std::vector<std::uint32_t> streams(ranks, 0);
  for (std::uint32_t rank : p.rank_of_stream) p.place_of_stream.push_back(streams[rank]++);
  p.tasks.resize(ranks);
  for (std::size_t t = 0; t < g.task_count(); ++t) {
    std::vector<TaskId>& own = p.tasks[p.rank_of_stream[g.stream(TaskId(t)).value]];
    p.place_of_task.push_back(static_cast<std::uint32_t>(own.size()));
    own.push_back(TaskId(t));
  }
  return p;
}

std::uint64_t pair(std::uint32_t a, std::uint32_t b) {
  return (std::uint64_t{a} << 32) | b;
}

// Edges into representatives suffice: every other edge is the image of one of them. `stream` by stream of g: valid for
// representatives.
void redirect_edges(const TaskGraph& g, const std::vector<TaskId>& stands_for, const std::vector<StreamId>& stream,
                    GraphBuilder& b) {
  std::vector<std::pair<TaskId, TaskId>> edges;
  for (std::size_t i = 0; i < g.task_count(); ++i) {
    for (TaskId next : g.successors(TaskId(i))) {
      if (stream[g.stream(next).value].valid()) edges.emplace_back(stands_for[i], stands_for[next.value]);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (const auto& [before, after] : edges) b.depend(before, after);
}

}  // namespace

RankDescription describe_ranks(const TaskGraph& g, std::span<const Time> durations) {
  const Places p = places_of(g);
  RankDescription out;
  for (std::uint32_t rank = 0; rank < p.tasks.size(); ++rank) {
    Fingerprint program, cost;
    for (TaskId t : p.tasks[rank]) {
      const StreamId s = g.stream(t);
      program.add(pair(p.place_of_stream[s.value], g.info(s).role));
      program.add(pair(g.kind(t), g.resource(t)));
      cost.add(static_cast<std::uint64_t>(durations[t.value].picoseconds()));
      for (TaskId next : g.successors(t)) {
        const std::uint32_t other = p.rank_of_stream[g.stream(next).value];
        const std::uint64_t relation = pair(p.place_of_task[t.value], p.place_of_task[next.value]);
        if (other == rank) program.add(relation);
        if (other != rank) out.peers.push_back({RankId(std::size_t{rank}), RankId(std::size_t{other}), relation});
      }
      program.add(std::numeric_limits<std::uint64_t>::max());  // ends the task's edges
    }
    out.signatures.push_back({.program = program.value(), .cost = cost.value()});
  }
  return out;
}

FoldedGraph fold_graph(const TaskGraph& g, std::span<const Time> durations, const Folding& folding) {
  const Places p = places_of(g);
  const auto violations = check_folding(folding, describe_ranks(g, durations));
  CS_CHECK(violations.empty(), "{} ranks cannot be folded: {}", violations.size(), violations.front().what);
  const auto representative = [&](std::uint32_t rank) { return folding.representative[folding.class_of[rank]].value; };

  GraphBuilder b;
  std::vector<StreamId> stream(g.stream_count());
  for (std::size_t s = 0; s < g.stream_count(); ++s) {
    const std::uint32_t rank = p.rank_of_stream[s];
    if (representative(rank) == rank) stream[s] = b.add_stream(g.info(StreamId(s)));
  }
  FoldedGraph out;
  out.stands_for.resize(g.task_count());
  for (std::size_t i = 0; i < g.task_count(); ++i) {
    const TaskId t(i);
    const StreamId s = stream[g.stream(t).value];
    if (s.valid()) out.stands_for[i] = b.add({s, g.kind(t), durations[i], g.tag(t), g.resource(t)});
  }
  for (std::size_t i = 0; i < g.task_count(); ++i) {  // the others follow their representative
    const std::uint32_t rank = p.rank_of_stream[g.stream(TaskId(i)).value];
    out.stands_for[i] = out.stands_for[p.tasks[representative(rank)][p.place_of_task[i]].value];
  }
  redirect_edges(g, out.stands_for, stream, b);
  out.built = std::move(b).build();
  return out;
}

TaskTimes unfold(const FoldedGraph& folded, const TaskTimes& times) {
  TaskTimes out;
  for (TaskId t : folded.stands_for) {
    out.start.push_back(times.start[t.value]);
    out.finish.push_back(times.finish[t.value]);
  }
  out.makespan = times.makespan;
  return out;
}

}  // namespace k3sim
