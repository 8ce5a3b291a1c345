// Distinct 32-bit ids, so that a rank can never be passed where a task is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace k3sim {

template <class Tag>
struct Id {
  std::uint32_t value = std::numeric_limits<std::uint32_t>::max();
  constexpr Id() = default;
  explicit constexpr Id(std::uint32_t v) : value(v) {}
  explicit constexpr Id(std::size_t v) : value(static_cast<std::uint32_t>(v)) {}
  explicit constexpr Id(int v) : value(static_cast<std::uint32_t>(v)) {}
  constexpr bool valid() const { return value != std::numeric_limits<std::uint32_t>::max(); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using RankId = Id<struct RankTag>;
using StreamId = Id<struct StreamTag>;
using TaskId = Id<struct TaskTag>;
using LinkId = Id<struct LinkTag>;
using FlowId = Id<struct FlowTag>;

}  // namespace k3sim
