// The counts reader accepts what the specification names and reports everything else with its place.
#include <doctest/doctest.h>

#include <string>

#include "models/moe/counts_csv.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

std::string errors_of(const std::string& text, int experts = 4, int ranks = 2) {
  try {
    parse_counts_csv(text, "c.csv", experts, ranks);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("counts csv: three columns, in any order, with comments and carriage returns") {
  const auto tables = parse_counts_csv("# real run\r\nexpert,rank,tokens\r\n3,1,5\r\n\r\n0, 0 ,7\n", "c.csv", 4, 2);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].counts.at(1, 3) == 5);
  CHECK(tables[0].counts.at(0, 0) == 7);
  CHECK(tables[0].counts.total() == 12);
}

TEST_CASE("counts csv: layers and micro-batches come sorted") {
  const auto tables =
      parse_counts_csv("layer,micro_batch,rank,expert,tokens\n2,0,0,0,1\n1,5,0,0,2\n1,4,1,1,3\n", "c.csv", 4, 2);
  REQUIRE(tables.size() == 3);
  CHECK(tables[0].id.layer == 1);
  CHECK(tables[0].id.micro_batch == 4);
  CHECK(tables[0].counts.at(1, 1) == 3);
  CHECK(tables[2].id.layer == 2);
}

TEST_CASE("counts csv: every problem is reported with line and column") {
  const std::string e = errors_of(
      "rank,expert,tokens\n0,0,x\n2,0,1\n0,4,1\n0,1,-3\n0,2\n1,1,1\n1,1,2\n0,0,99999999999999999999\n1,2,1.5\n");
  CHECK(has(e, "c.csv:2:5: tokens: 'x' is not a whole number"));
  CHECK(has(e, "c.csv:3:1: rank: 2 is outside 0 ... 1 (2 ranks)"));
  CHECK(has(e, "c.csv:4:3: expert: 4 is outside 0 ... 3 (4 experts)"));
  CHECK(has(e, "c.csv:5:5: tokens: -3 is negative"));
  CHECK(has(e, "c.csv:6:1: 2 fields, but the header has 3 columns"));
  CHECK(has(e, "c.csv:8:1: rank 1, expert 1 was already given in line 7"));
  CHECK(has(e, "c.csv:9:5: tokens: 99999999999999999999 is too large"));
  CHECK(has(e, "c.csv:10:5: tokens: '1.5' is not a whole number"));
}

TEST_CASE("counts csv: headers are checked") {
  CHECK(has(errors_of("rank,expert,token\n0,0,1\n"), "c.csv:1:13: unknown column 'token'"));
  CHECK(has(errors_of("rank,expert,token\n0,0,1\n"), "did you mean 'tokens'?"));
  CHECK(has(errors_of("rank,tokens\n"), "column 'expert' is missing"));
  CHECK(has(errors_of("rank,expert,tokens,rank\n"), "column 'rank' appears twice"));
  CHECK(has(errors_of(""), "the file is empty"));
  CHECK(has(errors_of("rank,expert,tokens\n"), "no counts below the header"));
}

TEST_CASE("counts csv: a flood of problems is cut, an overflow is one problem, a missing file is named") {
  std::string flood = "rank,expert,tokens\n";
  for (int i = 0; i < 100; ++i) flood += "9,0,1\n";
  CHECK(has(errors_of(flood), "80 more problems"));
  CHECK(has(errors_of("rank,expert,tokens\n0,0,2000000000\n0,1,2000000000\n"), "more than 2^31 - 1 rows"));
  CHECK_THROWS_WITH_AS(read_counts_csv("/nonexistent/c.csv", 4, 2), "error: /nonexistent/c.csv: cannot read this file",
                       ConfigError);
}

TEST_CASE("counts csv: conflicts with top-k are found") {
  ExpertCounts counts(2, 4);
  counts.at(0, 0) = 3;
  counts.at(0, 1) = 1;
  counts.at(1, 2) = 3;
  const auto conflicts = topk_conflicts(counts, 2);
  REQUIRE(conflicts.size() == 2);
  CHECK(has(conflicts[0], "rank 0 has 2 tokens but 3 entries for expert 0"));
  CHECK(has(conflicts[1], "rank 1 routes 3 entries, which is no multiple of top-2"));
}
