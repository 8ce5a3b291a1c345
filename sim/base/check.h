// CS_CHECK(cond, "format {}", values...): an invariant of ours, always on. A failure is a bug in k3sim, never a user
// mistake; main() turns the InternalError into exit code 3.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace k3sim {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* file, int line, const char* cond, const std::string& what) {
  throw InternalError(fmt::format("{}:{}: check '{}' failed: {}", file, line, cond, what));
}

}  // namespace k3sim

#define CS_CHECK(cond, ...)                                                                    \
  do {                                                                                         \
    if (!(cond)) ::k3sim::check_failed(__FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__)); \
  } while (false)
