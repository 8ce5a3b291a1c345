// Source: product-spec section 2; see progress.h.
#include "tools/commands/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "tools/commands/command.h"

namespace k3sim {

namespace {
constexpr std::chrono::milliseconds kPatience{2000};  // shorter work shows no bar
constexpr std::chrono::milliseconds kInterval{100};
constexpr int kWidth = 30;
}  // namespace

Progress::Progress(CommandContext& context, std::string what, std::int64_t total)
    : err_(context.err),
      enabled_(context.err_is_terminal),
      what_(std::move(what)),
      total_(std::max<std::int64_t>(total, 1)),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) err_ << "\r\033[K" << std::flush;
}

void Progress::advance(std::int64_t steps) {
  if (!enabled_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ += steps;
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kPatience || now - last_ < kInterval) return;
  last_ = now;
  draw(now);
}

void Progress::draw(std::chrono::steady_clock::time_point now) {
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? elapsed * (1 - share) / share : 0;
  err_ << fmt::format("\r\033[K{} [{}{}] {}/{}, about {:.0f} s left", what_, std::string(filled, '#'),
                      std::string(kWidth - filled, '.'), done_, total_, left)
       << std::flush;
  drawn_ = true;
}

}  // namespace k3sim
