// --trace-ranks: lists and ranges of ranks, with messages for everything else.
#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tools/report/step_trace.h"

using namespace k3sim;

TEST_CASE("parse_ranks: lists, ranges and all, in order and without repeats") {
  CHECK(parse_ranks("", 8).empty());
  CHECK(parse_ranks("representatives", 8).empty());
  CHECK(parse_ranks("5,0-2,1", 8) == std::vector<int>{0, 1, 2, 5});
  CHECK(parse_ranks("all", 3) == std::vector<int>{0, 1, 2});
}

TEST_CASE("parse_ranks: what is not a rank of this run is named") {
  for (const char* bad : {"8", "-1", "x", "1-", "3-1", "1,,2", "0 1", "99999999999999"})
    CHECK_THROWS_AS(parse_ranks(bad, 8), UsageError);
  CHECK_THROWS_WITH_AS(parse_ranks("9", 8), "--trace-ranks: '9' is not a rank; there are ranks 0 to 7", UsageError);
}
