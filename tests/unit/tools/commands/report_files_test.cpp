// The command that a report prints gives its numbers again, wherever the files went and however many threads worked.
#include "tools/commands/report_files.h"

#include <doctest/doctest.h>

using namespace k3sim;

TEST_CASE("command_line: what changes no result is left out, the rest stays as typed") {
  CHECK(command_line({"run", "k3_2048_h800", "--out", "somewhere", "--set", "a.b=1", "--json"}) ==
        "k3sim run k3_2048_h800 --set a.b=1");
  CHECK(command_line({"sweep", "s.yaml", "--threads=4", "--out=x", "--merge", "--detail", "step"}) ==
        "k3sim sweep s.yaml --detail step");
}

TEST_CASE("command_line: words that a shell would take apart are quoted") {
  CHECK(command_line({"run", "my file.yaml", "--set", "a=[1, 2]"}) == "k3sim run 'my file.yaml' --set 'a=[1, 2]'");
  CHECK(command_line({"run", "it's"}) == "k3sim run 'it'\\''s'");
}
