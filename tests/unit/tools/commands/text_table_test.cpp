// Columns line up, numbers to the right, words to the left.
#include "tools/commands/text_table.h"

#include <doctest/doctest.h>

using namespace k3sim;

TEST_CASE("table: words align left, numbers right, and lines end without blanks") {
  TextTable table({"name", "step"});
  table.add({"a", "10.5 s"});
  table.add({"longer", "9.25 s"});
  table.add({"none"});
  CHECK(table.to_text() == "name      step\na       10.5 s\nlonger  9.25 s\nnone\n");
}

TEST_CASE("table: characters outside ASCII count as one column") {
  TextTable table({"t", "x"});
  table.add({"7 µs", "a"});
  table.add({"12 s", "b"});
  CHECK(table.to_text() == "   t  x\n7 µs  a\n12 s  b\n");
}

TEST_CASE("table: the header is bold only in colour") {
  TextTable table({"a"});
  CHECK(table.to_text().find('\033') == std::string::npos);
  CHECK(table.to_text(true).starts_with("\033[1m"));
}
