// Errors, checks and did-you-mean: the words a user sees.
#include <doctest/doctest.h>

#include <string>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

TEST_CASE("error: a problem prints as file, line, column, key, what and hint") {
  const Problem p{{"run.yaml", 3, 7}, "parallel.tp", "7 does not divide 64 heads", "did you mean '8'?"};
  CHECK(to_string(p) == "error: run.yaml:3:7: parallel.tp: 7 does not divide 64 heads (did you mean '8'?)");
}

TEST_CASE("error: parts that are unknown leave no traces") {
  CHECK(to_string(Problem{{}, "", "nothing to do", ""}) == "error: nothing to do");
  CHECK(to_string(Problem{{"a.yaml", 0, 0}, "k", "bad", ""}) == "error: a.yaml: k: bad");
  CHECK(to_string(Problem{{"a.yaml", 5, 0}, "", "bad", ""}) == "error: a.yaml:5: bad");
  CHECK(to_string(Problem{{"a.yaml", 0, 9}, "", "bad", ""}) == "error: a.yaml: bad");  // a column needs a line
  CHECK(to_string(Problem{{}, "batch.sequence", "is 0", ""}) == "error: batch.sequence: is 0");
}

TEST_CASE("error: a ConfigError carries all problems in order, one per line") {
  const ConfigError e({{{"a.yaml", 1, 1}, "x", "first", ""}, {{"a.yaml", 2, 1}, "y", "second", ""}});
  CHECK(e.problems().size() == 2);
  CHECK(std::string(e.what()) == "error: a.yaml:1:1: x: first\nerror: a.yaml:2:1: y: second");
}

TEST_CASE("check: a broken invariant says where, what and with which values") {
  try {
    CS_CHECK(1 + 1 == 3, "sum is {} for {}", 2, "one and one");
    FAIL("not thrown");
  } catch (const InternalError& e) {
    const std::string what = e.what();
    CHECK(what.find("messages_test.cpp:") != std::string::npos);
    CHECK(what.find("check '1 + 1 == 3' failed: sum is 2 for one and one") != std::string::npos);
  }
}

TEST_CASE("suggest: distance counts insertions, deletions, substitutions and swaps of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("schedlue", "schedule") == 1);
  CHECK(edit_distance("TP", "tp") == 0);
}

TEST_CASE("suggest: the nearest word wins, ties go to the earlier one, strangers get nothing") {
  const std::vector<std::string> keys = {"pp", "tp", "parallel", "schedule"};
  CHECK(did_you_mean("paralel", keys) == "did you mean 'parallel'?");
  CHECK(did_you_mean("xp", keys) == "did you mean 'pp'?");
  CHECK(did_you_mean("optimizer", keys).empty());
  CHECK(did_you_mean("anything", {}).empty());
}

}  // namespace
}  // namespace k3sim
