// Is a schedule right? The answer is a proof or the shortest failing prefix.
//
// Checked in this order, later checks only if the earlier ones passed:
//   placement  each stage on exactly one rank, no stage or rank empty
//   counts     every micro-batch once per stage: one F, and one B or one I and one W; F before B / I before W
//   transfers  if there are any: one matching send and receive per boundary between ranks, none inside a rank, and both
//              sides of a pair of ranks in the same order (the runtime matches them by order)
//   phases     gather / free alternate around compute; one reduction after a stage's last gradient, on all stages or
//              none (a note if parameters are gathered and nothing is reduced, as older dumps have it); offloaded
//              activations come back before their backward
//   deadlock   the queue-drain execution reaches the end; else the cycle of waiting ranks is named
// Proof: the execution itself (all actions were run in an order that respects every dependency), with the activations
// held at most on each rank.
// Source: torch/distributed/pipelining/schedules.py at 00722e6 (_validate_schedule, _simulate_comms_compute), issue 5.
#pragma once

#include <string>
#include <vector>

#include "models/schedule/csv.h"

namespace k3sim {

struct LintReport {
  bool valid = false;
  std::vector<ScheduleProblem> problems;
  std::vector<int> peak_activations;  // per rank, (stage, micro-batch) pairs from F to W or B; filled when valid
  std::size_t actions = 0;            // that the proof ran through
  std::vector<std::string> notes;     // valid, but worth knowing; part of the text
  std::string text;                   // proof, or the failing prefix drawn
};

LintReport lint_schedule(const Schedule& schedule);

namespace lint {
// One check each; problems are appended. At most kMostProblems are kept.
constexpr std::size_t kMostProblems = 50;
struct Findings {
  std::vector<ScheduleProblem> problems;
  void add(std::size_t rank, std::size_t index, std::string what) {
    if (problems.size() < kMostProblems)
      problems.push_back({static_cast<int>(rank), static_cast<int>(index), std::move(what)});
  }
};
void check_placement(const Schedule& schedule, Findings& findings);
void check_counts(const Schedule& schedule, Findings& findings);
void check_transfers(const Schedule& schedule, Findings& findings);
void check_phases(const Schedule& schedule, Findings& findings);

struct Execution {
  std::size_t executed = 0;
  std::vector<std::size_t> next;  // per rank: first action not executed
  std::vector<int> cycle;         // ranks of the cycle, in waiting order; or one rank that waits for what never comes
};
// Requires: the checks above passed.
Execution execute(const Schedule& schedule);
// "rank 1 at 4 (1RECV_B0) waits for 2SEND_B0 on rank 2 at 9"; one line per rank of the cycle.
std::vector<std::string> explain_cycle(const Schedule& schedule, const Execution& execution);
}  // namespace lint

}  // namespace k3sim
