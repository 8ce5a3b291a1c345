// Max-min fair rates of the flows touched by a change: water-filling on the component that is connected through links
// that can bind.
//   repeat: take the smallest of (remaining capacity / sum of unfixed weights) over links and the smallest bound of an
//   unfixed flow; fix the flows of that link, or that flow, at this rate; subtract from the other links
// Link shares never fall during filling, so the heap of shares is lazy: an outdated entry is re-keyed when popped.
// Ties go to the lower link or flow id, so the result does not depend on the order of arrival.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2 (max-min fair flow control).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/net/flow_table.h"

namespace k3sim {

class MaxMinSolver {
 public:
  struct Change {
    FlowTable::Slot slot;
    double rate;
  };
  // Empties the table's lists of changes; returns the new rate of every flow of the touched components.
  std::span<const Change> solve(FlowTable& table);
  std::uint64_t solves() const { return solves_; }
  std::uint64_t flows_solved() const { return flows_solved_; }

 private:
  struct LinkState {
    std::uint64_t epoch = 0;
    double remaining = 0;
    double weight = 0;  // of unfixed flows
  };
  struct Share {
    double share;
    std::uint32_t link;
    // Max-heap order of std::push_heap turned into a min-heap.
    bool operator<(const Share& o) const { return share > o.share || (share == o.share && link > o.link); }
  };
  void collect(FlowTable& table);
  void visit_link(const FlowTable& table, std::uint32_t link);
  void visit_flow(const FlowTable& table, FlowTable::Slot slot);
  void fill(const FlowTable& table);
  void fix(const FlowTable& table, FlowTable::Slot slot, double rate);
  void order_by_bound(const FlowTable& table);
  bool fixed(FlowTable::Slot slot) const { return flows_[slot] == 2 * epoch_ + 1; }
  bool tightest(Share& out, double bound);

  std::vector<LinkState> links_;
  std::vector<std::uint64_t> flows_;  // by slot: 2 x epoch when visited, + 1 when fixed
  std::vector<std::uint32_t> component_links_;
  std::vector<FlowTable::Slot> component_flows_;
  std::vector<Share> heap_;
  std::vector<Change> changes_;
  double least_bound_ = 0, largest_bound_ = 0;  // of the component's flows
  std::uint64_t epoch_ = 0, solves_ = 0, flows_solved_ = 0;
};

}  // namespace k3sim
