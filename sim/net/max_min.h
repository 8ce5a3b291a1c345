// Max-min fair rates, solved again only where they change.
//   share of a link = (capacity - loads of the flows below its level) / weights of the flows at its level or above
//   level of a flow = min(its bound, floor(share) of its links)
// In whole units (flow_table.h) these two lines have exactly one solution, and each is about one link or one flow, so a
// part may be solved with the rest held at its levels: when no held flow could move, the result is that of solving
// everything anew, to the bit. Water rises once, from the lowest level that may change. Free are at first the flows
// that joined, and those at the level of a full link whose members came or went. On the way up
//   a full link is opened (the flows at its level become free) when a free flow on it goes lower than before, or is not
//   stopped where it was before: both show at or below the level of the link, so in time
//   a held flow above the share at which a link fills up becomes free before that link is filled
// All links with the least floor(share) are filled at once: their order would matter in the last unit.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2 (max-min fair flow control: every flow has a
// bottleneck).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/net/flow_table.h"

namespace k3sim {

class MaxMinSolver {
 public:
  struct Change {
    FlowTable::Slot slot;
    double rate;
  };
  // Empties the table's lists of changes; returns the flows whose level changed.
  std::span<const Change> solve(FlowTable& table);
  std::uint64_t solves() const { return solves_; }
  std::uint64_t flows_solved() const { return flows_solved_; }  // that were free

 private:
  using Slot = FlowTable::Slot;
  struct LinkState {
    std::int64_t room = 0, weight = 0;  // capacity less all loads but those of free flows yet to fix; their weights
    std::int64_t key = 0;               // lowest entry in the heap
    std::int64_t level = 0;             // share at which it filled up
    std::uint32_t epoch = 0;            // of the last solve with free flows on it that it can bind
    std::uint32_t open_epoch = 0;       // of the last solve that opened it
    bool filled = false;
    bool queued = false;     // its share is to be looked at
    bool held_near = false;  // a held flow is just below the share at which it filled up
  };
  enum class Kind : std::uint32_t { link, group, flow, bound };  // in the order of one instant of the water
  struct Entry {
    std::int64_t level;
    Kind kind;
    std::uint32_t id;  // link (link, group) or slot (flow, bound)
    // Max-heap order of std::push_heap turned into a min-heap.
    bool operator<(const Entry& o) const {
      return level != o.level ? level > o.level : kind != o.kind ? kind > o.kind : id > o.id;
    }
  };
  void start(FlowTable& table);
  void rise(FlowTable& table);
  void commit(FlowTable& table);
  LinkState& touch(const FlowTable& table, std::uint32_t link);
  void release(FlowTable& table, Slot slot);
  void open(FlowTable& table, std::uint32_t link);
  void open_full(FlowTable& table, std::uint32_t link);
  void fix(FlowTable& table, Slot slot, std::int64_t level);
  void wait_for_bound(const FlowTable& table, Slot slot);
  void queue_bounds(const FlowTable& table);
  void pass_old_level(FlowTable& table, Slot slot);
  void fill_links(FlowTable& table, std::int64_t share);
  bool release_above(FlowTable& table, std::int64_t share);
  void check_ties(FlowTable& table, std::uint32_t link);
  void push(const Entry& e);
  Entry pop();
  void queue_shares();
  bool opened(std::uint32_t link) const { return links_[link].open_epoch == epoch_; }
  bool is_free(const FlowTable::Fill& f) const { return f.mark == epoch_; }

  std::vector<LinkState> links_;
  std::vector<std::uint32_t> touched_;  // links with free flows that they can bind
  std::vector<std::uint32_t> opened_;
  std::vector<std::uint32_t> queue_;  // links whose share may be lower than their entry
  std::vector<Slot> free_;
  std::vector<Slot> forced_;  // flows that must be free from the start: found too late in an earlier rise
  std::vector<Entry> heap_;
  std::vector<Slot> bounds_;  // flows that only their bound may stop
  std::int64_t least_bound_ = 0;
  std::vector<std::uint32_t> batch_;
  std::vector<Slot> found_;
  std::vector<std::pair<std::int64_t, Slot>> above_;
  std::vector<std::pair<std::int64_t, std::int64_t>> near_;  // level, weight
  std::vector<Change> changes_;
  std::size_t unfixed_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint64_t solves_ = 0, flows_solved_ = 0;
};

}  // namespace k3sim
