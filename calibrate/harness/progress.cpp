// Progress bar: "[#####.....]  50 % kda  12 s".
// Source: see the header.
#include "calibrate/harness/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace k3sim {

Progress::Progress(int total, bool enabled)
    : total_(std::max(total, 1)), enabled_(enabled), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (enabled_) std::fputs("\r\033[K", stderr);
}

std::string Progress::bar(int done, int total, int width) {
  const int full = std::clamp(done * width / std::max(total, 1), 0, width);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') + "]";
}

void Progress::step(const std::string& what) {
  if (!enabled_) return;
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start_;
  std::fputs(
      fmt::format("\r\033[K{} {:3d} % {}  {:.0f} s", bar(done_, total_, 30), 100 * done_ / total_, what, gone.count())
          .c_str(),
      stderr);
  std::fflush(stderr);
  ++done_;
}

}  // namespace k3sim
