// k3sim: table of contents only. Commands are listed in tools/commands/registry.cpp, errors become exit codes in
// tools/commands/program.cpp.
// Source: product-spec section 2.
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "tools/commands/command.h"
#include "tools/commands/program.h"

int main(int argc, char** argv) {
  k3sim::CommandContext context{.out = std::cout, .err = std::cerr};
  context.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  context.err_is_terminal = isatty(STDERR_FILENO) != 0;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return k3sim::run_program(arguments, context);
}
