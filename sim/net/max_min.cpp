// Water-filling on a touched component; see the header.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#include "sim/net/max_min.h"

#include <algorithm>

namespace k3sim {

void MaxMinSolver::visit_link(const FlowTable& table, std::uint32_t link) {
  LinkState& s = links_[link];
  if (s.epoch == epoch_) return;
  s = {epoch_, table.link(link).capacity, 0};
  component_links_.push_back(link);
}

void MaxMinSolver::visit_flow(const FlowTable& table, FlowTable::Slot slot) {
  FlowState& s = flows_[slot];
  if (s.epoch == epoch_) return;
  s = {epoch_, false};
  component_flows_.push_back(slot);
  for (const auto& e : table.path(slot)) {
    if (!table.link(e.link).can_bind()) continue;
    visit_link(table, e.link);
    links_[e.link].weight += e.weight;
  }
}

void MaxMinSolver::collect(FlowTable& table) {
  ++epoch_;
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
  flows_[slot].fixed = true;
  changes_.push_back({slot, rate});
  for (const auto& e : table.path(slot)) {
    LinkState& s = links_[e.link];
    if (s.epoch != epoch_) continue;
    s.weight -= e.weight;
    s.remaining -= e.weight * rate;
  }
}

void MaxMinSolver::fill(const FlowTable& table) {
  const auto by_bound = [&](FlowTable::Slot a, FlowTable::Slot b) {
    const auto& x = table.flow(a);
    const auto& y = table.flow(b);
    return x.bound < y.bound || (x.bound == y.bound && x.id < y.id);
  };
  std::sort(component_flows_.begin(), component_flows_.end(), by_bound);
  for (std::uint32_t link : component_links_) {
    if (links_[link].weight > 0 && table.link(link).can_bind()) heap_.push_back({share(link), link});
  }
  std::make_heap(heap_.begin(), heap_.end());
  std::size_t next = 0;
  while (next < component_flows_.size()) {
    const FlowTable::Slot slot = component_flows_[next];
    if (flows_[slot].fixed) {
      ++next;
      continue;
    }
    const double bound = table.flow(slot).bound;
    if (heap_.empty() || bound <= heap_.front().share) {  // the keys are lower bounds of the true shares
      fix(table, slot, bound);
      ++next;
      continue;
    }
    std::pop_heap(heap_.begin(), heap_.end());
    Share& top = heap_.back();
    const LinkState& s = links_[top.link];
    if (s.weight <= 0) {
      heap_.pop_back();
      continue;
    }
    const double now = std::max(share(top.link), 0.0);
    if (now > top.share) {
      top.share = now;
      std::push_heap(heap_.begin(), heap_.end());
      continue;
    }
    const std::uint32_t link = top.link;
    const double rate = top.share;
    heap_.pop_back();
    for (const auto& m : table.members(link)) {
      if (!flows_[m.slot].fixed) fix(table, m.slot, rate);
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
