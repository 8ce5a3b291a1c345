// The running task of every stream by predicted completion, in the total order (time, priority, id): a winner tree with
// one leaf per stream. A stream runs one task at a time, so a new prediction simply replaces the old one: nothing is
// ever cancelled and nothing outdated is popped.
//
// Replacing a leaf replays its path to the root: ceil(log2(streams)) comparisons without a branch, whose addresses are
// known in advance - unlike a heap's, where each level waits for the comparison above (1000 streams: about half the
// time of a 4-ary heap, see k3sim_bench). After pop() the leaf stays as a hole until the stream starts its next task,
// so the usual completion costs one replay. Source: Knuth, The Art of Computer Programming vol. 3, section 5.4.1 (trees
// of winners).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/engine/event.h"

namespace k3sim {

class StreamQueue {
 public:
  explicit StreamQueue(std::size_t streams)
      : leaves_(std::bit_ceil(std::max<std::size_t>(streams, 2))), tree_(2 * leaves_, kIdle) {}

  bool empty() { return top() == kIdle; }
  Time top_time() { return time_of(top()); }  // Time::max() when empty
  std::uint32_t top_id() { return static_cast<std::uint32_t>(top()); }

  // The stream's task completes, at `time`, as event `key`. Requires: time >= 0.
  void set(StreamId stream, Time time, std::uint64_t key) {
    if (stream == hole_) hole_ = StreamId();
    replay(stream, order_of(time, key));
  }

  // Removes the first event. Requires: !empty(); `stream` is the stream of that event.
  void pop(StreamId stream) {
    close_hole();
    hole_ = stream;
  }

  // Is there another event at this instant? Requires: t is not later than the first event.
  bool has_event_at(Time t) {
    if (!hole_.valid()) return top_time() == t;
    bool found = false;
    for (std::size_t i = leaves_ + hole_.value; i > 1; i /= 2) found |= time_of(tree_[i ^ 1]) == t;
    return found;
  }

 private:
  static constexpr EventOrder kIdle = order_of(Time::max(), ~std::uint64_t{0});

  EventOrder top() {
    close_hole();
    return tree_[1];
  }

  void close_hole() {
    if (!hole_.valid()) return;
    const StreamId stream = hole_;
    hole_ = StreamId();
    replay(stream, kIdle);
  }

  // While there is a hole, nodes on its path may be outdated; its own replay makes all of them right again, since the
  // siblings of its path never are.
  void replay(StreamId stream, EventOrder least) {
    EventOrder* const tree = tree_.data();
    std::size_t i = leaves_ + stream.value;
    tree[i] = least;
    for (; i > 1; i /= 2) {
      const EventOrder sibling = tree[i ^ 1];
      least = sibling < least ? sibling : least;
      tree[i / 2] = least;
    }
  }

  std::size_t leaves_;
  std::vector<EventOrder> tree_;  // node i has children 2i and 2i + 1; leaves from leaves_ on
  StreamId hole_;
};

}  // namespace k3sim
