// Progress bar on a terminal, nothing when piped. One line, rewritten in place, with the family and the time gone.
// Source: product-spec.md section 2 (progress bar for anything longer than 2 s, silent when piped).
#pragma once

#include <chrono>
#include <string>

namespace k3sim {

class Progress {
 public:
  Progress(int total, bool enabled);
  ~Progress();
  void step(const std::string& what);  // one unit done, `what` comes next
  static std::string bar(int done, int total, int width);

 private:
  int total_;
  int done_ = 0;
  bool enabled_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace k3sim
