// CSV files open without options elsewhere, and come back as they went.
#include "tools/report/csv.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"

using namespace k3sim;

TEST_CASE("CsvTable: fields with comma, quote or line break survive a round trip") {
  CsvTable t({{"name", "text", "what it is"}, {"step_s", "s", "time"}});
  t.add({"a,b", "1.5"});
  t.add({"say \"x\"", ""});
  t.add({"two\nlines", "-3e+20"});
  const CsvData back = parse_csv(t.text(), "t.csv");
  CHECK(back.header == std::vector<std::string>{"name", "step_s"});
  CHECK(back.rows == t.rows());
  CHECK(t.text().substr(0, 13) == "name,step_s\r\n");
}

TEST_CASE("parse_csv: reads both line ends and a byte-order mark, refuses what is not CSV") {
  CHECK(parse_csv("\xef\xbb\xbf"
                  "a,b\n1,2\r\n3,4",
                  "t")
            .rows == std::vector<std::vector<std::string>>{{"1", "2"}, {"3", "4"}});
  CHECK(parse_csv("", "t").header.empty());
  CHECK_THROWS_AS(parse_csv("a,b\n1\n", "t.csv"), ConfigError);
  CHECK_THROWS_AS(parse_csv("a\n\"open\n", "t.csv"), ConfigError);
  CHECK_THROWS_AS(parse_csv("a\nx\"y\n", "t.csv"), ConfigError);
  CHECK_THROWS_AS(parse_csv("a\n\"x\"y\n", "t.csv"), ConfigError);
}

TEST_CASE("csv_number: nine digits, missing for what is not a number") {
  CHECK(csv_number(1.0 / 3.0) == "0.333333333");
  CHECK(csv_number(-0.0) == "0");
  CHECK(csv_number(1e300 * 1e300) == "");
}

TEST_CASE("data_dictionary_csv: one row per column of every table") {
  const CsvTable a({{"rank", "1", "pipeline rank"}}), b({{"bytes", "byte", "size, on the GPU"}, {"part", "text", ""}});
  const CsvData d = parse_csv(data_dictionary_csv({{"a.csv", a.columns()}, {"b.csv", b.columns()}}), "d");
  REQUIRE(d.rows.size() == 3);
  CHECK(d.rows[1] == std::vector<std::string>{"b.csv", "bytes", "byte", "prediction", "size, on the GPU"});
}
