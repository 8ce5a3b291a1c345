// The command line's contract: exit codes, where messages go, and what is suggested.
#include "tools/commands/program.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tools/commands/command.h"

using namespace k3sim;

namespace {

struct Result {
  int code;
  std::string out, err;
};

Result run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  CommandContext context{.out = out, .err = err};
  const int code = run_program(arguments, context);
  return {code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("program: help and version are answers on stdout") {
  CHECK(run({"--help"}).code == 0);
  CHECK(run({"--help"}).out.find("schema") != std::string::npos);
  CHECK(run({"--version"}).out == "k3sim " K3SIM_VERSION "\n");
  CHECK(run({"--version"}).err.empty());
}

TEST_CASE("program: the help of a command ends with an example") {
  CHECK(run({"schema", "--help"}).out.find("Example:\n  k3sim schema") != std::string::npos);
}

TEST_CASE("program: wrong usage is exit code 2, a message on stderr and nothing on stdout") {
  const std::vector<std::string> lines[] = {{}, {"schem"}, {"schema", "--jso"}, {"schema", "extra"}, {"--verbose"}};
  for (const std::vector<std::string>& arguments : lines) {
    const Result result = run(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("error: "));
    CHECK(result.err.find("--help\n") != std::string::npos);
  }
}

TEST_CASE("program: misspelt commands and options get a suggestion") {
  CHECK(run({"schem"}).err.find("did you mean 'schema'?") != std::string::npos);
  CHECK(run({"--versoin"}).err.find("did you mean '--version'?") != std::string::npos);
  CHECK(run({"schema", "--hlp"}).err.find("see k3sim schema --help") != std::string::npos);
}
