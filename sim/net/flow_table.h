// Flat arrays of the flows in the network and the links they cross.
//   load on a link = sum over flow classes of weight x rate; weight = member flows of the class that cross the link
//   bound of a class = min(cap, capacity / weight over its links): it can never be faster than alone
//   a link can bind only when the sum of weight x bound of its classes exceeds its capacity; other links are slack and
//   neither limit nor connect flows, which keeps the re-solved components small
// The bound sums are whole bytes per second (rounded up), so adding and removing is exact and order-independent.
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
  struct Element {
    std::uint32_t link = 0;
    std::uint32_t position = 0;  // of this element in its link's members
    double weight = 0;
  };
  struct Flow {
    std::uint32_t first = 0;  // in elements()
    std::uint32_t count = 0;
    double bound = 0;
    double rate = 0;       // bytes/s per member
    double remaining = 0;  // bytes per member as of `since`
    Time since{};
    std::uint32_t id = 0;
    std::uint32_t capacity = 0;  // of the element region
    double cap = 0;
    double bytes = 0;
    Time first_byte{};
  };
  struct Member {
    Slot slot = 0;
    std::uint32_t element = 0;  // absolute index in elements()
  };
  struct Link {
    double capacity = 0;         // bytes/s
    std::int64_t bound_sum = 0;  // bytes/s
    std::int64_t room = 0;       // whole bytes/s of the capacity
    bool can_bind() const { return bound_sum > room; }
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
  std::span<const Element> path(Slot s) const { return {elements_.data() + flows_[s].first, flows_[s].count}; }
  const Link& link(std::uint32_t l) const { return links_[l]; }
  std::span<const Member> members(std::uint32_t l) const { return members_[l]; }
  const Element& element(std::uint32_t e) const { return elements_[e]; }
  std::size_t link_count() const { return links_.size(); }
  std::size_t slot_count() const { return flows_.size(); }

  // Where rates may have changed since the last solve.
  std::vector<std::uint32_t>& dirty_links() { return dirty_links_; }
  std::vector<Slot>& new_flows() { return new_flows_; }

 private:
  void reserve_elements(Flow& f, std::size_t count);
  void fill_path(Flow& f, std::span<const PathElement> path);
  double bound_of(Slot slot) const;

  std::vector<Link> links_;
  std::vector<std::vector<Member>> members_;
  std::vector<Flow> flows_;
  std::vector<Element> elements_;
  std::vector<Slot> free_;
  std::vector<std::uint32_t> dirty_links_;
  std::vector<Slot> new_flows_;
};

}  // namespace k3sim
