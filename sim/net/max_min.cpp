// Water-filling on a touched component; see the header.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#include "sim/net/max_min.h"

#include <algorithm>
#include <limits>

namespace k3sim {

void MaxMinSolver::visit_link(const FlowTable& table, std::uint32_t link) {
  LinkState& s = links_[link];
  if (s.epoch == epoch_) return;
  s = {epoch_, table.link(link).capacity, 0};
  component_links_.push_back(link);
}

void MaxMinSolver::visit_flow(const FlowTable& table, FlowTable::Slot slot) {
  if (flows_[slot] >= 2 * epoch_) return;
  flows_[slot] = 2 * epoch_;
  component_flows_.push_back(slot);
  const double bound = table.flow(slot).bound;
  least_bound_ = std::min(least_bound_, bound);
  largest_bound_ = std::max(largest_bound_, bound);
  for (const auto& e : table.path(slot)) {
    if (!table.link(e.link).can_bind()) continue;
    visit_link(table, e.link);
    links_[e.link].weight += e.weight;
  }
}

void MaxMinSolver::collect(FlowTable& table) {
  ++epoch_;
  least_bound_ = std::numeric_limits<double>::infinity();
  largest_bound_ = 0;
  links_.resize(table.link_count());
  flows_.resize(table.slot_count());
  component_links_.clear();
  component_flows_.clear();
  changes_.clear();
  heap_.clear();
  for (std::uint32_t link : table.dirty_links()) visit_link(table, link);
  for (FlowTable::Slot slot : table.new_flows()) visit_flow(table, slot);
  for (std::size_t i = 0; i < component_links_.size(); ++i) {
    for (const auto& m : table.members(component_links_[i])) visit_flow(table, m.slot);
  }
  table.dirty_links().clear();
  table.new_flows().clear();
}

void MaxMinSolver::fix(const FlowTable& table, FlowTable::Slot slot, double rate) {
  ++flows_[slot];
  changes_.push_back({slot, rate});
  for (const auto& e : table.path(slot)) {
    LinkState& s = links_[e.link];
    if (s.epoch != epoch_) continue;
    s.weight -= e.weight;
    s.remaining -= e.weight * rate;
  }
}

// Flows in ascending order of (bound, id). Most flows of a component have one bound, then no sorting is needed.
void MaxMinSolver::order_by_bound(const FlowTable& table) {
  if (least_bound_ == largest_bound_) return;
  std::sort(component_flows_.begin(), component_flows_.end(), [&](FlowTable::Slot a, FlowTable::Slot b) {
    const auto& x = table.flow(a);
    const auto& y = table.flow(b);
    return x.bound < y.bound || (x.bound == y.bound && x.id < y.id);
  });
}

// The link with the smallest share, found by re-keying outdated entries; false when no link is left.
bool MaxMinSolver::tightest(Share& out, double bound) {
  while (!heap_.empty()) {
    Share& front = heap_.front();
    if (bound <= front.share) return out = front, true;  // the keys are lower bounds of the true shares
    std::pop_heap(heap_.begin(), heap_.end());
    Share& popped = heap_.back();
    const LinkState& s = links_[popped.link];
    if (s.weight <= 0) {
      heap_.pop_back();
      continue;
    }
    const double now = s.remaining / s.weight;
    if (now > popped.share) {
      popped.share = now;
      std::push_heap(heap_.begin(), heap_.end());
      continue;
    }
    out = popped;
    heap_.pop_back();
    return true;
  }
  return false;
}

void MaxMinSolver::fill(const FlowTable& table) {
  if (component_flows_.empty()) return;
  order_by_bound(table);
  for (std::uint32_t link : component_links_) {
    if (links_[link].weight > 0) heap_.push_back({links_[link].remaining / links_[link].weight, link});
  }
  std::make_heap(heap_.begin(), heap_.end());
  for (std::size_t next = 0; next < component_flows_.size();) {
    const FlowTable::Slot slot = component_flows_[next];
    if (fixed(slot)) {
      ++next;
      continue;
    }
    const double bound = table.flow(slot).bound;
    Share tight{};
    if (!tightest(tight, bound) || bound <= tight.share) {
      fix(table, slot, bound);
      ++next;
      continue;
    }
    for (const auto& m : table.members(tight.link)) {
      if (!fixed(m.slot)) fix(table, m.slot, tight.share);
    }
  }
}

std::span<const MaxMinSolver::Change> MaxMinSolver::solve(FlowTable& table) {
  collect(table);
  fill(table);
  ++solves_;
  flows_solved_ += component_flows_.size();
  return changes_;
}

}  // namespace k3sim
