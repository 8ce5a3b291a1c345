// The chunked free list against the standard ordered set.
#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "sim/base/rng.h"
#include "sim/mem/free_list.h"

using namespace k3sim;

TEST_CASE("property: the free list equals an ordered set under random inserts, erases and searches") {
  const RandomKey key{.seed = 9};
  std::uint64_t draw = 0;
  FreeList list;
  std::set<std::pair<std::int64_t, std::int64_t>> reference;
  for (int i = 0; i < 20000; ++i) {
    const bool grow = i % 4000 < 2500;
    const std::int64_t size = static_cast<std::int64_t>(random_below(key, draw++, 40)) * 512;
    const auto address = static_cast<std::int64_t>(random_below(key, draw++, 1 << 20));
    if (random_below(key, draw++, 10) < (grow ? 8U : 2U)) {
      if (reference.emplace(size, address).second) list.insert({size, address, static_cast<std::uint32_t>(i)});
    } else if (const auto it = reference.lower_bound({size, 0}); it != reference.end()) {
      list.erase(it->first, it->second);
      reference.erase(it);
    }
    const auto expected = reference.lower_bound({size, INT64_MIN});
    const FreeList::Cursor got = list.lower_bound(size);
    REQUIRE(list.at_end(got) == (expected == reference.end()));
    if (expected != reference.end()) {
      REQUIRE(list.at(got).size == expected->first);
      REQUIRE(list.at(got).address == expected->second);
    }
    REQUIRE(list.empty() == reference.empty());
  }
  FreeList::Cursor c = list.begin();
  for (const auto& [size, address] : reference) {
    REQUIRE(list.at(c).address == address);
    c = list.next(c);
  }
  CHECK(list.at_end(c));
}
