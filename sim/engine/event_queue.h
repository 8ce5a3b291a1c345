// Pending events in the total order (time, priority, id): an implicit 4-ary heap of 24-byte PODs plus a FIFO for events
// at the current instant.
//
// * Hole at the root: pop() leaves the root empty and the next push() sifts down from there, because most completions
//   start the next task of the same stream; one sift per event instead of two.
// * FIFO: an event for the instant being worked on, pushed in order, is appended and taken in O(1).
// * No cancel: an event carries a generation, its owner ignores outdated ones on pop, and remove_if() rebuilds the heap
//   when they pile up.
// Within 20-50 % of tuned calendar queues up to about 10^5 pending events. Source: engine-design notes section 2 (FIFO
// for "now" events: OMNeT++); LaMarca and Ladner 1996 for d-ary heaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/event.h"

namespace k3sim {

class EventQueue {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return heap_.size() - (hole_ ? 1 : 0) + now_.size() - now_head_; }

  void clear() {
    heap_.clear();
    now_.clear();
    now_head_ = 0;
    hole_ = false;
    current_ = Time();
  }

  // Requires: e.time >= the time of the last popped event.
  void push(const Event& e) {
    if (e.time == current_ && (now_head_ == now_.size() || before(now_.back(), e))) {
      now_.push_back(e);
    } else if (hole_) {
      hole_ = false;
      sift_down(0, e);
    } else {
      heap_.push_back(e);
      sift_up(heap_.size() - 1, e);
    }
  }

  // Requires: !empty().
  const Event& top() {
    fill_hole();
    return now_first() ? now_[now_head_] : heap_.front();
  }

  // Is there an event at this instant? Unlike top(), leaves a hole at the root for the next push() to fill.
  // Requires: no event before t.
  bool has_event_at(Time t) const {
    if (now_head_ != now_.size()) return true;  // such events are never later than others
    const std::size_t first = hole_ ? 1 : 0, end = std::min(heap_.size(), hole_ ? kArity + 1 : std::size_t{1});
    bool found = false;
    for (std::size_t i = first; i < end; ++i) found |= heap_[i].time == t;
    return found;
  }

  // Requires: !empty().
  Event pop() {
    fill_hole();
    if (now_first()) {
      const Event e = now_[now_head_];
      if (++now_head_ == now_.size()) now_.clear(), now_head_ = 0;
      return e;
    }
    hole_ = true;
    current_ = heap_.front().time;
    return heap_.front();
  }

  // Drops every event for which outdated(event) holds, O(n).
  template <class Outdated>
  void remove_if(Outdated outdated) {
    fill_hole();
    now_.erase(now_.begin(), now_.begin() + static_cast<std::ptrdiff_t>(now_head_));
    now_head_ = 0;
    std::erase_if(now_, outdated);
    std::erase_if(heap_, outdated);
    for (std::size_t i = heap_.size() / kArity + 1; i-- > 0;) {
      if (i < heap_.size()) sift_down(i, Event(heap_[i]));
    }
  }

 private:
  static constexpr std::size_t kArity = 4;

  // Requires: no hole.
  bool now_first() const {
    return now_head_ != now_.size() && (heap_.empty() || before(now_[now_head_], heap_.front()));
  }

  void fill_hole() {
    if (!hole_) return;
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
  }

  void sift_up(std::size_t i, const Event& e) {
    while (i > 0) {
      const std::size_t parent = (i - 1) / kArity;
      if (!before(e, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = e;
  }

  // Selected by arithmetic: which child is least cannot be predicted, and compilers turn ?: into a jump here.
  static std::size_t lesser(const Event* h, std::size_t a, std::size_t b) {
    return a ^ ((a ^ b) & (std::size_t{0} - std::size_t{before(h[b], h[a])}));
  }

  // Moves the hole at i down to a leaf along the least children and then e up from there. New events are usually among
  // the latest, so the way up ends at once; comparing with e on the way down would mispredict at every level.
  void sift_down(std::size_t i, const Event& e) {
    const std::size_t n = heap_.size(), root = i;
    Event* const h = heap_.data();
    std::size_t child = kArity * i + 1;
    for (; child + kArity <= n; child = kArity * i + 1) {  // two rounds of a tournament: no chain of four comparisons
      const std::size_t least = lesser(h, lesser(h, child, child + 1), lesser(h, child + 2, child + 3));
      h[i] = h[least];
      i = least;
    }
    if (child < n) {
      std::size_t least = child;
      for (std::size_t c = child + 1; c < n; ++c) least = lesser(h, least, c);
      h[i] = h[least];
      i = least;
    }
    for (std::size_t parent = (i - 1) / kArity; i > root && before(e, h[parent]); parent = (i - 1) / kArity) {
      h[i] = h[parent];
      i = parent;
    }
    h[i] = e;
  }

  std::vector<Event> heap_;  // with hole_, the root is unused
  std::vector<Event> now_;   // events at current_, in order, from now_head_ on
  std::size_t now_head_ = 0;
  Time current_;
  bool hole_ = false;
};

}  // namespace k3sim
