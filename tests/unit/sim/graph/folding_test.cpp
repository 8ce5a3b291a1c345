// Partitions on hand-made rank descriptions: what must fold, what must not, and why.
#include "sim/graph/folding.h"

#include <doctest/doctest.h>

namespace k3sim {
namespace {

RankDescription ring(std::size_t ranks) {
  RankDescription d;
  d.signatures.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) d.peers.push_back({RankId(r), RankId((r + 1) % ranks), 7});
  return d;
}

TEST_CASE("folding: a uniform ring is one class") {
  const Folding f = fold(ring(12));
  CHECK(f.representative == std::vector<RankId>{RankId(0)});
  CHECK(f.multiplicity == std::vector<std::uint32_t>{12});
}

TEST_CASE("folding: an open line folds nothing, since every rank is at its own distance from the ends") {
  RankDescription line = ring(9);
  line.peers.pop_back();
  CHECK(fold(line).representative.size() == 9);
}

TEST_CASE("folding: one slow rank in a ring gives every distance from it a class") {
  RankDescription d = ring(8);
  d.signatures[3].cost = 99;
  CHECK(fold(d).representative.size() == 8);
}

TEST_CASE("folding: placement alone splits a class, and its peers with it") {
  RankDescription d;
  d.signatures.resize(8);
  for (std::size_t r = 0; r < 8; r += 2) d.peers.push_back({RankId(r), RankId(r + 1), 1});  // four pairs
  CHECK(fold(d).multiplicity == std::vector<std::uint32_t>{4, 4});
  d.signatures[6].placement = 1;
  CHECK(fold(d).multiplicity == std::vector<std::uint32_t>{3, 3, 1, 1});
}

TEST_CASE("folding: another relation to the same peer class is another class") {
  RankDescription d;
  d.signatures.resize(4);
  d.peers = {{RankId(0), RankId(1), 1}, {RankId(2), RankId(3), 2}};
  CHECK(fold(d).representative.size() == 4);
}

TEST_CASE("check_folding: names the rank, its representative and the reason") {
  RankDescription d = ring(4);
  const std::vector<std::uint64_t> all_one(4, 5);
  CHECK(check_folding(folding_from_labels(all_one), d).empty());
  d.signatures[1].program = 1;
  d.signatures[2].placement = 1;
  d.peers.push_back({RankId(0), RankId(3), 8});
  const auto v = check_folding(folding_from_labels(all_one), d);
  REQUIRE(v.size() == 3);
  CHECK(v[0].what == "rank 1 runs another program than rank 0");
  CHECK(v[1].what == "rank 2 is placed differently in the fabric than rank 0");
  CHECK(v[2].what == "rank 3 talks to other classes of peers than rank 0");
  CHECK(check_folding(no_folding(4), d).empty());
}

}  // namespace
}  // namespace k3sim
