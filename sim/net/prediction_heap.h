// The next thing that happens to every flow: exactly one pending event per slot, in the total order (time, priority,
// id), replaced in place when a rate changes. An implicit 4-ary heap with the position of every slot.
// Why not the event queue: a change of rate moves many predictions at once; replacing beats piling up outdated ones.
// Source: engine-design notes sections 2 and 3; LaMarca and Ladner 1996 for d-ary heaps.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/event_queue.h"

namespace k3sim {

class PredictionHeap {
 public:
  bool empty() const { return heap_.empty(); }
  Time top_time() const { return heap_.front().time; }
  std::uint32_t top_slot() const { return static_cast<std::uint32_t>(heap_.front().generation); }
  const Event& top() const { return heap_.front(); }

  // Inserts or replaces the event of `slot`. Requires: time >= 0.
  void set(std::uint32_t slot, Time time, std::uint64_t key) {
    if (slot >= position_.size()) position_.resize(slot + 1, kNone);
    const Event e{time, key, slot};
    if (position_[slot] == kNone) {
      heap_.push_back(e);
      sift_up(heap_.size() - 1, e);
    } else if (before(e, heap_[position_[slot]])) {
      sift_up(position_[slot], e);
    } else {
      sift_down(position_[slot], e);
    }
  }

  // Requires: !empty().
  void pop() {
    position_[top_slot()] = kNone;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
  }

 private:
  static constexpr std::size_t kArity = 4;
  static constexpr std::uint32_t kNone = 0xffffffffU;

  void place(std::size_t i, const Event& e) {
    heap_[i] = e;
    position_[static_cast<std::uint32_t>(e.generation)] = static_cast<std::uint32_t>(i);
  }

  void sift_up(std::size_t i, const Event& e) {
    for (; i > 0; i = (i - 1) / kArity) {
      const std::size_t parent = (i - 1) / kArity;
      if (!before(e, heap_[parent])) break;
      place(i, heap_[parent]);
    }
    place(i, e);
  }

  void sift_down(std::size_t i, const Event& e) {
    for (;;) {
      std::size_t child = kArity * i + 1;
      if (child >= heap_.size()) break;
      const std::size_t end = child + kArity < heap_.size() ? child + kArity : heap_.size();
      std::size_t least = child;
      for (++child; child < end; ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], e)) break;
      place(i, heap_[least]);
      i = least;
    }
    place(i, e);
  }

  std::vector<Event> heap_;              // Event::generation holds the slot
  std::vector<std::uint32_t> position_;  // by slot
};

}  // namespace k3sim
