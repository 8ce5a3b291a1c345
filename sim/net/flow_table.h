// Flat arrays of the flows in the network and the links they cross.
//   load on a link = sum over flow classes of weight x rate; weight = member flows of the class that cross the link
//   bound of a class = min(cap, capacity / weight over its links): it can never be faster than alone
//   a link can bind only when the sum of weight x bound of its classes exceeds its capacity; other links are slack and
//   neither limit nor connect flows, which keeps the re-solved components small
// Everything the rates follow from is a whole number, so that sums are exact and independent of order:
//   levels (rates per member), loads, bounds and capacities count units of about 1e-5 bytes/s, weights units of 2^-36;
//   the load of a flow on a link is floor(weight x level)
// Source: engine-design notes section 5; SimGrid src/kernel/lmm (selective update), re-thought for flat arrays.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace k3sim {

struct PathElement {
  LinkId link;
  double weight = 1.0;  // member flows of the class that cross this link
};

// One class of identical flows: same start, same size, same path signature, hence the same rate.
struct FlowRequest {
  FlowId id;                          // stable id: orders completions of one instant
  std::span<const PathElement> path;  // may be empty when cap is finite; a link named twice counts twice
  Bytes bytes;                        // per member flow
  Time latency{};                     // paid once, before the first byte
  Bandwidth cap{std::numeric_limits<double>::infinity()};  // per member flow
};

class FlowTable {
 public:
  using Slot = std::uint32_t;
  static constexpr int kWeightBits = 36;
  static constexpr std::int64_t kMaxLevel = std::int64_t{1} << 61;

  struct Element {
    std::uint32_t link = 0;
    std::uint32_t position = 0;  // of this element in its link's members
    std::int64_t units = 0;      // of the weight
    double weight() const { return static_cast<double>(units) * 0x1p-36; }
  };
  struct Flow {
    double bound = 0;  // bytes/s per member
    std::int64_t bound_units = 0;
    double rate = 0;       // bytes/s per member
    double remaining = 0;  // bytes per member as of `since`
    Time since{};
    std::uint32_t id = 0;
    std::uint32_t capacity = 0;  // of the element region
    double cap = 0;
    double bytes = 0;
    Time first_byte{};
  };
  // The solver's view of a flow, apart from Flow so that scans over a link's members touch little memory.
  struct Fill {
    std::int64_t level = 0;   // the rate that the last solve gave; 0 before the first
    std::int64_t next = 0;    // the level that the solve under way gives
    std::uint32_t mark = 0;   // of the last solve that looked at the flow
    std::uint32_t first = 0;  // its path in elements_
    std::uint32_t count = 0;
    std::uint32_t binding = 0;  // links on it that can bind, in the solve under way
  };
  struct Member {
    Slot slot = 0;
    std::uint32_t element = 0;  // absolute index in elements()
  };
  struct Link {
    __int128 bound_sum = 0;     // sum of ceil(weight x bound) over the attached flows
    std::int64_t capacity = 0;  // all in units
    std::int64_t load = 0;      // while it can bind: sum of floor(weight x level) over the attached flows
    std::int64_t level = 0;     // of its share when it is full
    bool full = false;          // and nobody on it is above its share
    bool can_bind() const { return bound_sum > capacity; }
  };

  explicit FlowTable(std::span<const Bandwidth> capacities);

  // Requires: positive capacities on the path; a finite bound. The flow is not yet on its links.
  Slot allocate(const FlowRequest& request);
  void attach(Slot slot);  // on its links from now on
  void detach(Slot slot);
  void release(Slot slot) { free_.push_back(slot); }
  void set_capacity(LinkId link, Bandwidth capacity);

  Flow& flow(Slot s) { return flows_[s]; }
  const Flow& flow(Slot s) const { return flows_[s]; }
  Fill& fill(Slot s) { return fills_[s]; }
  const Fill& fill(Slot s) const { return fills_[s]; }
  // Bytes/s of a flow at this level.
  double rate(Slot s, std::int64_t level) const {
    return level == flows_[s].bound_units ? flows_[s].bound : static_cast<double>(level) * unit_;
  }
  static std::int64_t load(std::int64_t level, std::int64_t weight) {
    return static_cast<std::int64_t>(static_cast<__int128>(level) * weight >> kWeightBits);
  }
  // floor(room / weight). Requires: both positive or zero room.
  static std::int64_t share(std::int64_t room, std::int64_t weight);
  std::span<const Element> path(Slot s) const { return {elements_.data() + fills_[s].first, fills_[s].count}; }
  Link& link(std::uint32_t l) { return links_[l]; }
  const Link& link(std::uint32_t l) const { return links_[l]; }
  std::span<const Member> members(std::uint32_t l) const { return members_[l]; }
  const Element& element(std::uint32_t e) const { return elements_[e]; }
  std::size_t link_count() const { return links_.size(); }
  std::size_t slot_count() const { return flows_.size(); }

  // Where rates may have changed since the last solve: full links whose members came or went.
  std::vector<std::uint32_t>& dirty_links() { return dirty_links_; }
  std::vector<Slot>& new_flows() { return new_flows_; }

 private:
  void set_bound(Slot slot);
  std::int64_t load_of(std::uint32_t link) const;
  std::int64_t units_of(double bytes_per_second) const;
  void reserve_elements(Slot slot, std::size_t count);
  void fill_path(Fill& f, std::span<const PathElement> path);

  std::vector<Link> links_;
  std::vector<std::vector<Member>> members_;
  std::vector<Flow> flows_;
  std::vector<Fill> fills_;
  std::vector<Element> elements_;
  std::vector<Slot> free_;
  std::vector<std::uint32_t> dirty_links_;
  std::vector<Slot> new_flows_;
  double unit_ = 1;  // in bytes/s, a power of two
};

}  // namespace k3sim
