// Water-filling on the part of the network that a change reaches; see the header.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#include "sim/net/max_min.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr std::int64_t kUnfixed = -1;
constexpr std::int64_t kNoKey = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kHair = std::int64_t{1} << 31;  // about 1e-8 of the largest capacity
constexpr std::int64_t kMaxWeights = std::int64_t{1} << 62;

}  // namespace

inline void MaxMinSolver::push(const Entry& e) {
  heap_.push_back(e);
  std::push_heap(heap_.begin(), heap_.end());
}

MaxMinSolver::Entry MaxMinSolver::pop() {
  std::pop_heap(heap_.begin(), heap_.end());
  const Entry e = heap_.back();
  heap_.pop_back();
  return e;
}

inline MaxMinSolver::LinkState& MaxMinSolver::touch(const FlowTable& table, std::uint32_t link) {
  LinkState& s = links_[link];
  if (s.epoch != epoch_) {
    s.room = table.link(link).capacity - table.link(link).load;
    s.weight = 0;
    s.key = kNoKey;
    s.epoch = epoch_;
    s.filled = s.held_near = false;
    s.queued = true;
    touched_.push_back(link);
    queue_.push_back(link);
  } else if (!s.queued) {
    s.queued = true;
    queue_.push_back(link);
  }
  return s;
}

// Makes the flow part of what is solved.
void MaxMinSolver::release(FlowTable& table, Slot slot) {
  FlowTable::Fill& f = table.fill(slot);
  if (is_free(f)) return;
  f.mark = epoch_;
  f.next = kUnfixed;
  ++unfixed_;
  free_.push_back(slot);
  f.binding = 0;
  for (const auto& e : table.path(slot)) {
    if (!table.link(e.link).can_bind()) continue;
    ++f.binding;
    LinkState& s = touch(table, e.link);
    s.room += FlowTable::load(f.level, e.units);
    s.weight += e.units;
  }
  if (f.binding == 0) fix(table, slot, table.flow(slot).bound_units);
}

// Releases the flows at the level of a full link. Requires: the water has not passed that level.
inline void MaxMinSolver::open(FlowTable& table, std::uint32_t link) {
  if (table.link(link).full && !opened(link)) open_full(table, link);
}

void MaxMinSolver::open_full(FlowTable& table, std::uint32_t link) {
  const std::int64_t level = table.link(link).level;
  links_[link].open_epoch = epoch_;
  opened_.push_back(link);
  bool others = false;  // may be held back by flows of this one
  for (const auto& m : table.members(link)) {
    if (table.fill(m.slot).level != level) continue;
    release(table, m.slot);
    others = others || table.fill(m.slot).binding > 1;
  }
  if (others) push({level, Kind::group, link});
}

void MaxMinSolver::start(FlowTable& table) {
  ++epoch_;
  links_.resize(table.link_count());
  touched_.clear();
  opened_.clear();
  queue_.clear();
  free_.clear();
  heap_.clear();
  bounds_.clear();
  least_bound_ = kNoKey;
  unfixed_ = 0;
  for (Slot slot : table.new_flows()) {
    release(table, slot);
    if (table.fill(slot).binding > 1) wait_for_bound(table, slot);
  }
  for (std::uint32_t link : table.dirty_links()) open(table, link);
  for (Slot slot : forced_) {
    if (is_free(table.fill(slot))) continue;
    release(table, slot);
    if (table.fill(slot).binding > 1) push({table.fill(slot).level, Kind::flow, slot});
  }
}

// Bounds are rarely reached: they stay off the heap until the water is about to pass the least of them. Flows on one
// link that can bind wait for nothing: release_above looks at their bound when that link is to be filled.
void MaxMinSolver::wait_for_bound(const FlowTable& table, Slot slot) {
  bounds_.push_back(slot);
  least_bound_ = std::min(least_bound_, table.flow(slot).bound_units);
}

void MaxMinSolver::queue_bounds(const FlowTable& table) {
  if (bounds_.empty() || (!heap_.empty() && heap_.front().level < least_bound_)) return;
  for (Slot slot : bounds_)
    if (table.fill(slot).next == kUnfixed) push({table.flow(slot).bound_units, Kind::bound, slot});
  bounds_.clear();
  least_bound_ = kNoKey;
}

inline void MaxMinSolver::fix(FlowTable& table, Slot slot, std::int64_t level) {
  FlowTable::Fill& f = table.fill(slot);
  f.next = level;
  --unfixed_;
  const bool lower = level < f.level;
  for (const auto& e : table.path(slot)) {
    LinkState& s = links_[e.link];
    if (s.epoch == epoch_) {
      s.weight -= e.units;
      s.room -= FlowTable::load(level, e.units);
    }
    if (lower) open(table, e.link);
  }
}

// The water stands where the flow stopped before, and it is still free.
void MaxMinSolver::pass_old_level(FlowTable& table, Slot slot) {
  if (table.fill(slot).binding == 1) return;  // no other link is or was full
  const std::int64_t level = table.fill(slot).level;
  if (table.flow(slot).bound_units == level) return fix(table, slot, level);
  const auto path = table.path(slot);
  for (const auto& e : path) {  // nothing below has changed on a full link that is not opened
    const FlowTable::Link& l = table.link(e.link);
    if (l.full && l.level == level && !opened(e.link)) return fix(table, slot, level);
  }
  for (const auto& e : path) open(table, e.link);
  wait_for_bound(table, slot);
}

// Entries for links whose share has fallen because flows became free.
void MaxMinSolver::queue_shares() {
  for (std::uint32_t link : queue_) {
    LinkState& s = links_[link];
    s.queued = false;
    if (s.filled || s.weight == 0) continue;
    const std::int64_t share = FlowTable::share(s.room, s.weight);
    CS_CHECK(s.weight > 0 && s.weight < kMaxWeights, "the weights on link {} are too large to add", link);
    if (share >= s.key) continue;
    s.key = share;
    push({share, Kind::link, link});
  }
  queue_.clear();
}

// Releases the held flows that the links of the batch would stop below their level, and lists the free ones to fix;
// false when the links may be filled now.
bool MaxMinSolver::release_above(FlowTable& table, std::int64_t share) {
  const std::size_t free_before = free_.size(), unfixed_before = unfixed_;
  found_.clear();
  for (std::uint32_t link : batch_) {
    std::int64_t held = 0;
    above_.clear();
    for (const auto& m : table.members(link)) {
      const FlowTable::Fill& f = table.fill(m.slot);
      if (is_free(f)) {
        if (f.next != kUnfixed) continue;
        const std::int64_t bound = table.flow(m.slot).bound_units;
        if (f.binding == 1 && bound < share)
          fix(table, m.slot, bound);
        else
          found_.push_back(m.slot);
      } else if (f.level <= share) {
        held = std::max(held, f.level);
      } else {
        above_.emplace_back(f.level, m.slot);
      }
    }
    links_[link].held_near = held > 0 && share - held <= kHair;
    if (above_.empty()) continue;
    std::sort(above_.begin(), above_.end(), std::greater<>());
    const LinkState& s = links_[link];
    for (const auto& [level, slot] : above_) {  // the fastest first: each one released leaves more for the others
      if (s.weight == 0 || level <= FlowTable::share(s.room, s.weight)) break;
      release(table, slot);
      if (table.fill(slot).binding > 1) push({level, Kind::flow, slot});
    }
  }
  return free_.size() > free_before || unfixed_ != unfixed_before;
}

// Would the link have stopped its fastest flows at a lower level, where held flows are? Only when these differ by the
// few units that rounding down leaves over; then the held ones have to be free from the start.
void MaxMinSolver::check_ties(FlowTable& table, std::uint32_t link) {
  const LinkState& s = links_[link];
  const auto members = table.members(link);
  if (!s.filled && !opened(link) && table.link(link).full) return;  // nothing changed here
  if (!s.held_near && (s.filled || s.room >= static_cast<std::int64_t>(members.size()))) return;
  std::int64_t top = 0, room = s.room, weight = 0;
  const auto level = [&](Slot slot) {
    return is_free(table.fill(slot)) ? table.fill(slot).next : table.fill(slot).level;
  };
  for (const auto& m : members) top = std::max(top, level(m.slot));
  near_.clear();
  for (const auto& m : members)
    if (level(m.slot) >= top - kHair) near_.push_back({level(m.slot), table.element(m.element).units});
  std::sort(near_.begin(), near_.end(), std::greater<>());
  for (std::size_t i = 0; i < near_.size();) {
    const std::int64_t here = near_[i].first;
    for (; i < near_.size() && near_[i].first == here; ++i) {
      room += FlowTable::load(here, near_[i].second);
      weight += near_[i].second;
    }
    if (here == top || FlowTable::share(room, weight) > here) continue;
    for (const auto& m : members)
      if (!is_free(table.fill(m.slot)) && table.fill(m.slot).level >= top - kHair) forced_.push_back(m.slot);
    return;
  }
}

void MaxMinSolver::fill_links(FlowTable& table, std::int64_t share) {
  batch_.clear();
  while (!heap_.empty() && heap_.front().level == share && heap_.front().kind == Kind::link) {
    const Entry e = pop();
    LinkState& s = links_[e.id];
    if (s.key != share) continue;
    s.key = kNoKey;
    if (s.weight == 0) continue;
    const std::int64_t now = FlowTable::share(s.room, s.weight);
    if (now == share) {
      batch_.push_back(e.id);
    } else {
      s.key = now;
      push({now, Kind::link, e.id});
    }
  }
  if (release_above(table, share)) {  // these links fill up later
    for (std::uint32_t link : batch_) {
      if (!links_[link].queued) queue_.push_back(link);
      links_[link].queued = true;
    }
    return;
  }
  for (std::uint32_t link : batch_) {
    links_[link].filled = true;
    links_[link].level = share;
  }
  for (Slot slot : found_)
    if (table.fill(slot).next == kUnfixed) fix(table, slot, share);
}

void MaxMinSolver::rise(FlowTable& table) {
  queue_shares();
  while (unfixed_ > 0) {
    queue_bounds(table);
    const Entry& e = heap_.front();
    const auto unfixed = [&](Slot slot) { return table.fill(slot).next == kUnfixed; };
    if (e.kind == Kind::link) {
      fill_links(table, e.level);
    } else if (const Entry top = pop(); top.kind == Kind::group) {
      for (const auto& m : table.members(top.id)) {
        const FlowTable::Fill& f = table.fill(m.slot);
        if (f.level == top.level && f.next == kUnfixed && is_free(f)) pass_old_level(table, m.slot);
      }
    } else if (top.kind == Kind::flow && unfixed(top.id)) {
      pass_old_level(table, top.id);
    } else if (top.kind == Kind::bound && unfixed(top.id)) {
      fix(table, top.id, top.level);
    }
    queue_shares();
  }
}

void MaxMinSolver::commit(FlowTable& table) {
  changes_.clear();
  for (Slot slot : free_) {
    FlowTable::Fill& f = table.fill(slot);
    if (f.next == f.level) continue;
    f.level = f.next;
    changes_.push_back({slot, table.rate(slot, f.level)});
  }
  for (std::uint32_t link : opened_) table.link(link).full = false;
  for (std::uint32_t link : touched_) {
    const LinkState& s = links_[link];
    FlowTable::Link& l = table.link(link);
    l.load = l.capacity - s.room;
    if (!s.filled) continue;
    l.level = s.level;
    l.full = true;
  }
}

std::span<const MaxMinSolver::Change> MaxMinSolver::solve(FlowTable& table) {
  forced_.clear();
  for (std::size_t forced = 0;; forced = forced_.size()) {
    start(table);
    rise(table);
    for (std::uint32_t link : touched_) check_ties(table, link);
    flows_solved_ += free_.size();
    if (forced_.size() == forced) break;
  }
  commit(table);
  table.dirty_links().clear();
  table.new_flows().clear();
  ++solves_;
  return changes_;
}

}  // namespace k3sim
