// A progress bar on a terminal for work longer than two seconds; silent when stderr is piped. Safe to advance from
// several threads; drawn at most ten times a second and erased at the end, so that results stay clean.
// Source: product-spec section 2.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <string>

namespace k3sim {

struct CommandContext;

class Progress {
 public:
  Progress(CommandContext& context, std::string what, std::int64_t total);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t steps = 1);

 private:
  void draw(std::chrono::steady_clock::time_point now);

  std::ostream& err_;
  bool enabled_;
  std::string what_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
  std::mutex mutex_;
};

}  // namespace k3sim
