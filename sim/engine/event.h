// One event and the total order of the whole program: (time, named priority, stable id).
// The order is packed into one 128-bit word, so that comparing two events is one subtraction.
// Source: engine-design notes section 3.
#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/engine/priorities.h"

namespace k3sim {

struct Event {
  Time time;
  std::uint64_t key = 0;  // priority and id, see make_key
  std::uint64_t generation = 0;

  static constexpr std::uint64_t make_key(Priority p, std::uint32_t id) {
    return (static_cast<std::uint64_t>(p) << 32) | id;
  }
  constexpr Priority priority() const { return static_cast<Priority>(key >> 32); }
  constexpr std::uint32_t id() const { return static_cast<std::uint32_t>(key); }
};

// Requires: time >= 0.
__extension__ using EventOrder = unsigned __int128;
constexpr EventOrder order_of(Time time, std::uint64_t key) {
  return (static_cast<EventOrder>(static_cast<std::uint64_t>(time.picoseconds())) << 64) | key;
}
constexpr EventOrder order_of(const Event& e) {
  return order_of(e.time, e.key);
}
constexpr bool before(const Event& a, const Event& b) {
  return order_of(a) < order_of(b);
}
constexpr Time time_of(EventOrder order) {
  return Time::ps(static_cast<std::int64_t>(order >> 64));
}

}  // namespace k3sim
