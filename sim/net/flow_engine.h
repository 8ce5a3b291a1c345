// Flow-level network: classes of flows that share links by max-min fairness, advanced by events.
//   a flow pays its latency, then its bytes move at its current rate; rates change only when flows join or leave
//   all completions of an instant are taken out before the rates are solved, once, for the touched components
//   finish = since + ceil(remaining / rate) in whole picoseconds; only flows whose rate changed get a new prediction
// Driven from outside: start(...), t = next_event(), advance(t, finished), ...
// Limits of fluid models: no incast or pause dynamics, no small-message rate limit; calibrated latencies cover those.
// Source: engine-design notes section 5; SimGrid's lazy updates (src/kernel/resource/Model.cpp), re-thought.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/net/flow_table.h"
#include "sim/net/max_min.h"
#include "sim/net/prediction_heap.h"

namespace k3sim {

// What a link carried, for reports.
struct LinkUsage {
  double bytes = 0;
  double peak_load = 0;  // bytes/s
};

struct FlowEngineStats {
  std::uint64_t completions = 0;
  std::uint64_t solves = 0;
  std::uint64_t flows_solved = 0;  // flows looked at by all solves together
  double seconds_lost = 0;         // sum over flows of (time taken - time at the flow's own bound)
};

class FlowEngine {
 public:
  explicit FlowEngine(std::span<const Bandwidth> capacities);

  // Requires: `now` not before the last advance; the id is not in use by a running flow. Copies the path.
  void start(const FlowRequest& request, Time now);
  // The next instant at which something happens inside (first byte or completion); Time::max() when nothing runs.
  Time next_event();
  // Requires: now <= next_event(). Appends the flows that complete at `now`, ascending by id.
  void advance(Time now, std::vector<FlowId>& finished);
  // From now on; flows on it change rate. Requires: positive capacity while flows use it.
  void set_capacity(LinkId link, Bandwidth capacity, Time now);

  bool idle() const { return running_ == 0; }
  std::size_t running() const { return running_; }
  // Links' usage is recorded when switched on before the first start (costs about a tenth).
  void record_usage();
  std::span<const LinkUsage> usage() const { return usage_; }
  FlowEngineStats stats() const;

  // Visits (id, rate per member, path) of every flow that moves bytes now, for tests and reports.
  template <class Visit>
  void for_each_active(Visit visit) {
    settle();
    for (FlowTable::Slot s = 0; s < table_.slot_count(); ++s) {
      if (active_[s]) visit(FlowId(table_.flow(s).id), table_.flow(s).rate, table_.path(s));
    }
  }

 private:
  void settle();  // solves the rates if anything changed
  void set_rate(FlowTable::Slot slot, double rate);
  void begin(FlowTable::Slot slot);
  void complete(FlowTable::Slot slot);
  void add_load(FlowTable::Slot slot, double change);

  FlowTable table_;
  MaxMinSolver solver_;
  PredictionHeap pending_;
  std::vector<char> active_;  // by slot: on its links
  std::vector<LinkUsage> usage_;
  std::vector<double> load_;
  bool record_ = false, dirty_ = false;
  Time now_{};
  std::size_t running_ = 0;
  std::uint64_t completions_ = 0;
  double seconds_lost_ = 0;
};

}  // namespace k3sim
