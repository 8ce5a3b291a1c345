// Expansion of one shell word against variables; used by shell_script.cpp only.
// Source: POSIX shell command language, sections on parameter expansion, arithmetic and field splitting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/import/shell_script.h"

namespace k3sim::shell {

using Variables = std::map<std::string, std::vector<std::string>>;  // scalars have one element

// Words of one raw word (quotes and $ still in it): unquoted expansions split at blanks, "${A[@]}" keeps elements. What
// is unknown leaves a mark in the text, so that it may be stored in a variable and still be found later.
std::vector<ShellWord> expand(const std::string& raw, int line, const Variables& variables);
// Moves marks from `text` to `unknown`.
void take_marks(ShellWord& word);
// The value of $((...)); empty when something in it is unknown.
std::string arithmetic(const std::string& expression, const Variables& variables);

}  // namespace k3sim::shell
