// The part of a shell that launch scripts need: what words do the commands of this script have?
//
// Understood: quotes, line continuation, comments, NAME=value, NAME+=value, arrays NAME=( ... ) and "${NAME[@]}",
// $NAME, ${NAME}, ${NAME:-default}, ${NAME:=default}, $((arithmetic)), if / elif / else / fi with [ ] and [[ ]] tests,
// here-documents (kept apart), #SBATCH lines (kept apart), eval, export. Loops, functions and command substitution are
// not run: what they would produce counts as unknown. Values the script expects from outside can be given.
// Nothing is executed. Source: POSIX shell command language; the launch scripts named in tests/data/launch/README.md.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace k3sim {

struct ShellWord {
  std::string text;
  int line = 0;
  std::vector<std::string> unknown;  // variables without a value, empty in `text`
};

struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;             // assignments apart
  std::map<std::string, std::vector<ShellWord>> variables;  // final values, split into words
  std::vector<std::string> documents;                       // bodies of here-documents, expanded
  std::vector<std::string> batch;                           // text behind #SBATCH
};

ShellScript read_shell_script(const std::string& text, const std::map<std::string, std::string>& environment = {});

}  // namespace k3sim
