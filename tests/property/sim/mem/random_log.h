// Random request logs for the allocator's property tests: keyed draws, so a failing seed can be replayed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/rng.h"
#include "sim/mem/request_log.h"

namespace k3sim::testing {

struct RandomLogShape {
  std::uint64_t seed = 0;
  std::size_t requests = 400;
  std::size_t live = 30;  // about this many allocations at once
  std::uint64_t streams = 2;
  bool other_streams = false;  // also record_stream and passing streams
  bool empty_cache = false;
};

inline RequestLog random_log(const RandomLogShape& shape) {
  auto below = [key = RandomKey{.seed = shape.seed, .purpose = 77}, draw = std::uint64_t{0}](std::uint64_t n) mutable {
    return random_below(key, draw++, n);
  };
  RequestLog log;
  std::vector<MemoryId> live;
  while (log.size() < shape.requests) {
    const std::uint64_t dice = below(100);
    if (shape.empty_cache && dice < 2) {
      log.empty_cache();
    } else if (shape.other_streams && dice < 10 && !live.empty()) {
      log.use_on_stream(live[static_cast<std::size_t>(below(live.size()))], static_cast<MemoryStream>(below(4)));
    } else if (shape.other_streams && dice < 15) {
      log.stream_passed(static_cast<MemoryStream>(below(4)), static_cast<std::size_t>(below(log.size() + 1)));
    } else if (live.size() < shape.live && (live.empty() || below(5) < 3)) {
      // A few favourite sizes (ties) among arbitrary ones from bytes to 60 MiB.
      const std::uint64_t scale = std::uint64_t{1} << below(26);
      const std::uint64_t bytes = below(3) == 0 ? (below(4) + 1) * (5 << 20) : scale + below(scale + 1);
      live.push_back(log.alloc({.bytes = Bytes(static_cast<std::int64_t>(std::max<std::uint64_t>(1, bytes))),
                                .stream = static_cast<MemoryStream>(below(shape.streams)),
                                .category = static_cast<std::uint8_t>(below(4))}));
    } else if (!live.empty()) {
      std::swap(live[static_cast<std::size_t>(below(live.size()))], live.back());
      log.free(live.back());
      live.pop_back();
    }
  }
  return log;
}

}  // namespace k3sim::testing
