// Bookkeeping of flows on links; see the header.
// Source: engine-design notes section 5 (flat arrays, classes with multiplicity).
#include "sim/net/flow_table.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr std::size_t kShortPath = 32;

std::int64_t whole_load(double weight, double bound) {
  return static_cast<std::int64_t>(std::ceil(weight * bound));
}

}  // namespace

FlowTable::FlowTable(std::span<const Bandwidth> capacities) : links_(capacities.size()), members_(capacities.size()) {
  for (std::size_t l = 0; l < links_.size(); ++l) {
    CS_CHECK(capacities[l].value() >= 0 && std::isfinite(capacities[l].value()), "capacity of link {}", l);
    links_[l].capacity = capacities[l].value();
    links_[l].room = static_cast<std::int64_t>(capacities[l].value());
  }
}

void FlowTable::reserve_elements(Flow& f, std::size_t count) {
  if (f.capacity >= count) return;
  f.first = static_cast<std::uint32_t>(elements_.size());  // an outgrown region stays unused
  f.capacity = static_cast<std::uint32_t>(std::max<std::size_t>(count, 8));
  elements_.resize(elements_.size() + f.capacity);
}

// Copies the path; a link named twice counts once with both weights. Long paths are merged by sorting.
void FlowTable::fill_path(Flow& f, std::span<const PathElement> path) {
  Element* begin = elements_.data() + f.first;
  if (path.size() > kShortPath) {
    std::transform(path.begin(), path.end(), begin, [](const PathElement& p) {
      return Element{p.link.value, 0, p.weight};
    });
    std::sort(begin, begin + path.size(), [](const Element& a, const Element& b) { return a.link < b.link; });
    Element* last = begin;
    for (Element* e = begin + 1; e != begin + path.size(); ++e) {
      if (e->link == last->link)
        last->weight += e->weight;
      else
        *++last = *e;
    }
    f.count = static_cast<std::uint32_t>(last - begin + 1);
    return;
  }
  for (const PathElement& p : path) {
    Element* same = std::find_if(begin, begin + f.count, [&](const Element& e) { return e.link == p.link.value; });
    if (same == begin + f.count) *same = {p.link.value, 0, 0.0}, ++f.count;
    same->weight += p.weight;
  }
}

FlowTable::Slot FlowTable::allocate(const FlowRequest& request) {
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(flows_.size()));
    flows_.emplace_back();
  }
  const Slot slot = free_.back();
  free_.pop_back();
  Flow& f = flows_[slot];
  reserve_elements(f, request.path.size());
  f.id = request.id.value;
  f.count = 0;
  f.bytes = f.remaining = request.bytes.as_double();
  f.rate = 0;
  fill_path(f, request.path);
  f.cap = request.cap.value();
  f.bound = bound_of(slot);
  return slot;
}

double FlowTable::bound_of(Slot slot) const {
  const Flow& f = flows_[slot];
  double bound = f.cap;
  for (const Element& e : path(slot)) {
    CS_CHECK(e.link < links_.size() && e.weight > 0, "flow {} crosses link {} with weight {}", f.id, e.link, e.weight);
    bound = std::min(bound, links_[e.link].capacity / e.weight);
  }
  CS_CHECK(std::isfinite(bound) && bound > 0, "flow {} crosses a link that is down, or has neither link nor cap", f.id);
  return bound;
}

void FlowTable::attach(Slot slot) {
  Flow& f = flows_[slot];
  for (std::uint32_t i = f.first; i < f.first + f.count; ++i) {
    Element& e = elements_[i];
    Link& link = links_[e.link];
    e.position = static_cast<std::uint32_t>(members_[e.link].size());
    members_[e.link].push_back({slot, i});
    link.bound_sum += whole_load(e.weight, f.bound);
    if (link.can_bind()) dirty_links_.push_back(e.link);
  }
  new_flows_.push_back(slot);
}

void FlowTable::detach(Slot slot) {
  const Flow& f = flows_[slot];
  for (std::uint32_t i = f.first; i < f.first + f.count; ++i) {
    const Element& e = elements_[i];
    Link& link = links_[e.link];
    if (link.can_bind()) dirty_links_.push_back(e.link);
    link.bound_sum -= whole_load(e.weight, f.bound);
    auto& members = members_[e.link];
    members[e.position] = members.back();
    elements_[members[e.position].element].position = e.position;
    members.pop_back();
  }
}

void FlowTable::set_capacity(LinkId id, Bandwidth capacity) {
  links_[id.value].capacity = capacity.value();
  links_[id.value].room = static_cast<std::int64_t>(capacity.value());
  dirty_links_.push_back(id.value);
  for (const Member& m : members_[id.value]) {  // the bounds of the crossing flows follow, hence other links' sums
    Flow& f = flows_[m.slot];
    const double bound = bound_of(m.slot);
    for (const Element& e : path(m.slot)) {
      links_[e.link].bound_sum += whole_load(e.weight, bound) - whole_load(e.weight, f.bound);
      dirty_links_.push_back(e.link);
    }
    f.bound = bound;
    new_flows_.push_back(m.slot);
  }
}

}  // namespace k3sim
