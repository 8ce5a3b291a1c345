// Folds a task graph that was built rank by rank: keeps the tasks of the representatives and redirects every edge to
// the representative of its source's class. Used to check foldings against full runs; large scenarios build only the
// representatives in the first place, from the same Folding.
//
// A rank's program is its tasks in insertion order (stream's place among the rank's streams, role, kind, resource
// class) with its internal edges; its cost is their durations; an edge between ranks is a peer relation (place of both
// tasks). A stream without a rank counts as a rank of its own, numbered after the last rank in stream order (a shared
// barrier). Tags are the caller's and are not compared.
#pragma once

#include <span>
#include <vector>

#include "sim/graph/folding.h"
#include "sim/graph/graph_builder.h"
#include "sim/graph/longest_path.h"

namespace k3sim {

// Placement signatures are left 0.
RankDescription describe_ranks(const TaskGraph& graph, std::span<const Time> durations);

struct FoldedGraph {
  BuiltGraph built;
  std::vector<TaskId> stands_for;  // by task of the full graph: the task of the folded graph with the same times
};

// Requires: check_folding(folding, describe_ranks(graph, durations)) is empty.
FoldedGraph fold_graph(const TaskGraph& graph, std::span<const Time> durations, const Folding& folding);

// The times of every task of the full graph from those of the folded one.
TaskTimes unfold(const FoldedGraph& folded, const TaskTimes& times);

}  // namespace k3sim
