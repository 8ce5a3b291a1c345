// User-facing errors. A Problem is one thing wrong with an input, with its place; a ConfigError carries all problems of
// a file at once. Thrown only by loaders and commands, caught only in main (exit code 2).
// Printed form (product spec section 2): error: FILE:LINE:COLUMN: key.path: what is wrong (did you mean ...?)
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace k3sim {

struct Place {
  std::string file;  // empty: not from a file (for example a command-line option)
  int line = 0;      // 1-based; 0: unknown
  int column = 0;    // 1-based; 0: unknown
};

struct Problem {
  Place place;
  std::string key;   // dotted path, may be empty
  std::string what;  // with the numbers
  std::string hint;  // "did you mean 'x'?" or other advice, may be empty
};

// "error: f.yaml:3:7: parallel.tp: ..." without a trailing newline.
std::string to_string(const Problem& p);

class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<Problem> problems);
  explicit ConfigError(std::string what, std::string key = {}, Place place = {})
      : ConfigError(std::vector<Problem>{{std::move(place), std::move(key), std::move(what), {}}}) {}
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// Wrong command-line usage: printed with "see k3sim COMMAND --help"; exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace k3sim
