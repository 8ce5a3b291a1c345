// Bookkeeping of flows on links; see the header.
// Source: engine-design notes section 5 (flat arrays, classes with multiplicity).
#include "sim/net/flow_table.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr std::size_t kShortPath = 32;
constexpr int kLargestBits = 57;  // of the largest capacity: a unit is 1e-7 bytes/s for 10 to 20 GB/s
constexpr double kOneWeight = 0x1p36;
constexpr double kMaxWeight = 0x1p20;  // sums of weights stay far from the ends of their type

__int128 whole_load(std::int64_t bound, std::int64_t weight) {  // rounded up
  constexpr __int128 kAlmostOne = (__int128{1} << FlowTable::kWeightBits) - 1;
  return (static_cast<__int128>(bound) * weight + kAlmostOne) >> FlowTable::kWeightBits;
}

std::int64_t weight_units(double weight) {
  CS_CHECK(weight > 0 && weight < kMaxWeight, "weight {} of a link on a path", weight);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(weight * kOneWeight + 0.5));
}

}  // namespace

FlowTable::FlowTable(std::span<const Bandwidth> capacities) : links_(capacities.size()), members_(capacities.size()) {
  double largest = 1;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    CS_CHECK(capacities[l].value() >= 0 && std::isfinite(capacities[l].value()), "capacity of link {}", l);
    largest = std::max(largest, capacities[l].value());
  }
  unit_ = std::ldexp(1.0, std::ilogb(largest) - kLargestBits);
  for (std::size_t l = 0; l < links_.size(); ++l) links_[l].capacity = units_of(capacities[l].value());
}

std::int64_t FlowTable::units_of(double bytes_per_second) const {
  const double units = bytes_per_second / unit_;
  return units < static_cast<double>(kMaxLevel) ? static_cast<std::int64_t>(units) : kMaxLevel;
}

void FlowTable::reserve_elements(Slot slot, std::size_t count) {
  Flow& f = flows_[slot];
  if (f.capacity >= count) return;
  fills_[slot].first = static_cast<std::uint32_t>(elements_.size());  // an outgrown region stays unused
  f.capacity = static_cast<std::uint32_t>(std::max<std::size_t>(count, 4));
  elements_.resize(elements_.size() + f.capacity);
}

// Copies the path; a link named twice counts once with both weights. Long paths are merged by sorting.
void FlowTable::fill_path(Fill& f, std::span<const PathElement> path) {
  Element* begin = elements_.data() + f.first;
  f.count = 0;
  if (path.size() > kShortPath) {
    std::transform(path.begin(), path.end(), begin, [](const PathElement& p) {
      return Element{p.link.value, 0, weight_units(p.weight)};
    });
    std::sort(begin, begin + path.size(), [](const Element& a, const Element& b) { return a.link < b.link; });
    Element* last = begin;
    for (Element* e = begin + 1; e != begin + path.size(); ++e) {
      if (e->link == last->link)
        last->units += e->units;
      else
        *++last = *e;
    }
    f.count = static_cast<std::uint32_t>(last - begin + 1);
    return;
  }
  for (const PathElement& p : path) {
    Element* same = std::find_if(begin, begin + f.count, [&](const Element& e) { return e.link == p.link.value; });
    if (same == begin + f.count) *same = {p.link.value, 0, 0}, ++f.count;
    same->units += weight_units(p.weight);
  }
}

FlowTable::Slot FlowTable::allocate(const FlowRequest& request) {
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(flows_.size()));
    flows_.emplace_back();
    fills_.emplace_back();
  }
  const Slot slot = free_.back();
  free_.pop_back();
  reserve_elements(slot, request.path.size());
  Flow& f = flows_[slot];
  Fill& fill = fills_[slot];
  f.id = request.id.value;
  f.bytes = f.remaining = request.bytes.as_double();
  f.rate = 0;
  f.cap = request.cap.value();
  fill.level = 0;
  fill_path(fill, request.path);
  set_bound(slot);
  return slot;
}

std::int64_t FlowTable::share(std::int64_t room, std::int64_t weight) {
  constexpr std::int64_t kOne = std::int64_t{1} << kWeightBits;
  if (weight % kOne == 0) return weight == kOne ? room : room / (weight / kOne);  // the usual weights, in 64 bits
  const auto numerator = static_cast<unsigned __int128>(static_cast<std::uint64_t>(room)) << kWeightBits;
  const auto divisor = static_cast<std::uint64_t>(weight);
  if ((numerator >> 61) >= divisor) return kMaxLevel;
  return static_cast<std::int64_t>(numerator / divisor);
}

void FlowTable::set_bound(Slot slot) {
  Flow& f = flows_[slot];
  std::int64_t bound = units_of(f.cap);
  f.bound = f.cap;
  for (const Element& e : path(slot)) {
    CS_CHECK(e.link < links_.size(), "flow {} crosses link {} of {}", f.id, e.link, links_.size());
    bound = std::min(bound, share(links_[e.link].capacity, e.units));
    f.bound = std::min(f.bound, static_cast<double>(links_[e.link].capacity) * unit_ / e.weight());
  }
  f.bound_units = bound;
  CS_CHECK(std::isfinite(f.bound) && bound > 0, "flow {} crosses a link that is down, or has neither link nor cap",
           f.id);
}

std::int64_t FlowTable::load_of(std::uint32_t link) const {
  std::int64_t sum = 0;
  for (const Member& m : members_[link]) sum += load(fills_[m.slot].level, elements_[m.element].units);
  return sum;
}

void FlowTable::attach(Slot slot) {
  const Fill& f = fills_[slot];
  for (std::uint32_t i = f.first; i < f.first + f.count; ++i) {
    Element& e = elements_[i];
    Link& link = links_[e.link];
    e.position = static_cast<std::uint32_t>(members_[e.link].size());
    const bool could_bind = link.can_bind();
    link.bound_sum += whole_load(flows_[slot].bound_units, e.units);
    if (!could_bind && link.can_bind()) link.load = load_of(e.link);
    members_[e.link].push_back({slot, i});
    if (link.full) dirty_links_.push_back(e.link);
  }
  new_flows_.push_back(slot);
}

void FlowTable::detach(Slot slot) {
  const Fill& f = fills_[slot];
  for (std::uint32_t i = f.first; i < f.first + f.count; ++i) {
    const Element& e = elements_[i];
    Link& link = links_[e.link];
    link.load -= load(f.level, e.units);
    link.bound_sum -= whole_load(flows_[slot].bound_units, e.units);
    if (link.full) dirty_links_.push_back(e.link);
    auto& members = members_[e.link];
    members[e.position] = members.back();
    elements_[members[e.position].element].position = e.position;
    members.pop_back();
  }
}

// Rare: forgets all levels, so that every flow is solved again.
void FlowTable::set_capacity(LinkId id, Bandwidth capacity) {
  links_[id.value].capacity = units_of(capacity.value());
  CS_CHECK(links_[id.value].capacity < kMaxLevel, "capacity of link {} beyond eight times the largest", id.value);
  for (const Member& m : members_[id.value]) {  // the bounds of the crossing flows follow, hence other links' sums
    const std::int64_t before = flows_[m.slot].bound_units;
    set_bound(m.slot);
    for (const Element& e : path(m.slot))
      links_[e.link].bound_sum += whole_load(flows_[m.slot].bound_units, e.units) - whole_load(before, e.units);
  }
  dirty_links_.clear();
  new_flows_.clear();
  for (std::uint32_t l = 0; l < links_.size(); ++l) {
    links_[l].load = 0;
    links_[l].full = false;
    for (const Member& m : members_[l]) {
      if (fills_[m.slot].first != m.element) continue;  // once per flow
      fills_[m.slot].level = 0;
      new_flows_.push_back(m.slot);
    }
  }
}

}  // namespace k3sim
