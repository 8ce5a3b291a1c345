// Strides of process groups under Megatron's rank order. Source: Megatron-LM megatron/core/parallel_state.py
// (RankGenerator).
#include "models/build/placement.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "sim/base/check.h"

namespace k3sim {

Placement::Placement(const ParallelConfig& p, int gpus_per_node)
    : tp_(p.tp), cp_(p.cp), dp_(p.dp), pp_(p.pp), ep_(p.ep), etp_(p.etp), gpus_per_node_(gpus_per_node) {
  CS_CHECK(dp_ > 0, "dp must be resolved before placement");
  const int expert_dp = tp_ * cp_ * dp_ / (ep_ * etp_);
  CS_CHECK(expert_dp > 0 && expert_dp * ep_ * etp_ == replicas(), "ep {} x etp {} must divide tp x cp x dp = {}", ep_,
           etp_, replicas());
  std::istringstream order(p.order);
  for (std::string axis; std::getline(order, axis, '-');) {
    if (axis == "tp") {
      dense_axes_.emplace_back(GroupKind::tp, tp_);
      expert_axes_.emplace_back(GroupKind::etp, etp_);
    } else if (axis == "cp") {
      dense_axes_.emplace_back(GroupKind::cp, cp_);
    } else if (axis == "ep") {
      expert_axes_.emplace_back(GroupKind::ep, ep_);
    } else if (axis == "dp") {
      dense_axes_.emplace_back(GroupKind::dp, dp_);
      expert_axes_.emplace_back(GroupKind::expert_dp, expert_dp);
    }
  }
}

namespace {
using Axes = std::vector<std::pair<GroupKind, int>>;
bool is_expert_axis(GroupKind k) {
  return k == GroupKind::etp || k == GroupKind::ep || k == GroupKind::expert_dp;
}

int find_size(const Axes& axes, GroupKind kind) {
  for (const auto& [k, n] : axes)
    if (k == kind) return n;
  return 1;
}

int find_stride(const Axes& axes, GroupKind kind) {
  int stride = 1;
  for (const auto& [k, n] : axes) {
    if (k == kind) return stride;
    stride *= n;
  }
  return stride;
}
}  // namespace

// Parameters are replicated over dp x cp, so GroupKind::dp is the combined axis (cp and dp are neighbours in every
// order).
int Placement::size(GroupKind kind) const {
  if (kind == GroupKind::pp) return pp_;
  if (kind == GroupKind::dp) return dp_ * cp_;
  return find_size(is_expert_axis(kind) ? expert_axes_ : dense_axes_, kind);
}

int Placement::stride(GroupKind kind) const {
  if (kind == GroupKind::pp) return replicas();
  if (kind == GroupKind::dp)
    return std::min(find_stride(dense_axes_, GroupKind::cp), find_stride(dense_axes_, GroupKind::dp));
  return find_stride(is_expert_axis(kind) ? expert_axes_ : dense_axes_, kind);
}

GroupPlacement Placement::group(GroupKind kind) const {
  GroupPlacement g;
  g.ranks = size(kind);
  g.stride = stride(kind);
  g.ranks_per_node = std::clamp(gpus_per_node_ / g.stride, 1, g.ranks);
  g.nodes = (g.ranks + g.ranks_per_node - 1) / g.ranks_per_node;
  g.concurrent = std::max(1, std::min(gpus_per_node_, world()) / g.ranks_per_node);
  return g;
}

std::vector<int> Placement::members(GroupKind kind, int replica) const {
  CS_CHECK(kind != GroupKind::pp, "pipeline groups span stages");
  const int n = size(kind), s = stride(kind);
  const int base = replica - (replica / s % n) * s;
  std::vector<int> out;
  for (int i = 0; i < n; ++i) out.push_back(base + i * s);
  return out;
}

}  // namespace k3sim
