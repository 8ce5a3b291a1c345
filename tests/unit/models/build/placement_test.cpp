// Groups on nodes, by hand for Megatron's order on nodes of eight.
#include <doctest/doctest.h>

#include "models/build/placement.h"

using namespace k3sim;

namespace {
ParallelConfig degrees(int tp, int pp, int cp, int dp, int ep, int etp = 1) {
  ParallelConfig p;
  p.tp = tp, p.pp = pp, p.cp = cp, p.dp = dp, p.ep = ep, p.etp = etp;
  return p;
}
}  // namespace

TEST_CASE("placement: tensor parallelism of eight fills a node and data parallelism then crosses nodes") {
  const Placement p(degrees(8, 2, 1, 4, 1), 8);
  CHECK(p.group(GroupKind::tp).nodes == 1);
  CHECK(p.group(GroupKind::tp).ranks_per_node == 8);
  CHECK(p.group(GroupKind::dp).ranks == 4);
  CHECK(p.group(GroupKind::dp).nodes == 4);
  CHECK(p.group(GroupKind::dp).ranks_per_node == 1);
  CHECK_FALSE(p.pp_hop_within_node());
}

TEST_CASE("placement: experts over 64 ranks take eight whole nodes") {
  const Placement p(degrees(1, 16, 1, 128, 64), 8);
  const GroupPlacement ep = p.group(GroupKind::ep);
  CHECK(ep.ranks == 64);
  CHECK(ep.nodes == 8);
  CHECK(ep.ranks_per_node == 8);
  const GroupPlacement edp = p.group(GroupKind::expert_dp);
  CHECK(edp.ranks == 2);
  CHECK(edp.stride == 64);
  CHECK(edp.nodes == 2);
}

TEST_CASE("placement: parameters are replicated over context and data parallel ranks together") {
  const Placement p(degrees(2, 1, 4, 2, 1), 8);
  CHECK(p.group(GroupKind::dp).ranks == 8);
  CHECK(p.group(GroupKind::cp).ranks == 4);
  CHECK(p.members(GroupKind::cp, 0) == std::vector<int>{0, 2, 4, 6});
  CHECK(p.members(GroupKind::cp, 9) == std::vector<int>{9, 11, 13, 15});
  CHECK(p.members(GroupKind::dp, 1) == std::vector<int>{1, 3, 5, 7, 9, 11, 13, 15});
}

TEST_CASE("placement: a pipeline of two stages of four ranks stays inside a node of eight") {
  const Placement p(degrees(4, 2, 1, 1, 1), 8);
  CHECK(p.pp_hop_within_node());
}
