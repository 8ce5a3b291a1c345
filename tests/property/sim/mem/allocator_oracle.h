// A second, deliberately plain allocator of the default policy: segments are vectors of pieces, every search looks at
// everything. It shares no code with the emulation except the log, and keeps no index that could go stale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/mem/request_log.h"

namespace k3sim::testing {

class AllocatorOracle {
 public:
  struct Piece {
    std::int64_t size;
    bool used;
    MemoryId owner;
  };
  struct Segment {
    std::int64_t address;
    MemoryStream stream;
    bool small;
    std::vector<Piece> pieces;
    std::int64_t size() const {
      std::int64_t sum = 0;
      for (const Piece& p : pieces) sum += p.size;
      return sum;
    }
  };

  explicit AllocatorOracle(std::int64_t capacity) : capacity_(capacity) {}

  bool run(const RequestLog& log) {
    for (const MemoryRequest& r : log.requests()) {
      if (r.kind == MemoryRequestKind::kAlloc && !allocate(r)) return false;
      if (r.kind == MemoryRequestKind::kFree) release(r.id);
      if (r.kind == MemoryRequestKind::kEmptyCache) drop_unused();
      peak_reserved = std::max(peak_reserved, reserved());
      peak_allocated = std::max(peak_allocated, allocated());
    }
    return true;
  }
  std::int64_t reserved() const {
    std::int64_t sum = 0;
    for (const Segment& s : segments) sum += s.size();
    return sum;
  }
  std::int64_t allocated() const {
    std::int64_t sum = 0;
    for (const Segment& s : segments)
      for (const Piece& p : s.pieces) sum += p.used ? p.size : 0;
    return sum;
  }

  std::vector<Segment> segments;
  std::int64_t peak_reserved = 0;
  std::int64_t peak_allocated = 0;

 private:
  bool allocate(const MemoryRequest& r) {
    constexpr std::int64_t mib = 1 << 20;
    std::int64_t size = 512;
    while (size < r.value && size < 4096) size += 512;
    if (size < r.value) size = r.value + (512 - r.value % 512) % 512;
    const bool small = size <= mib;
    if (place(size, small, r)) return true;
    std::int64_t want = small ? 2 * mib : size < 10 * mib ? 20 * mib : size;
    while (want % (2 * mib) != 0) want += 512;
    if (reserved() + want > capacity_) drop_unused();
    if (reserved() + want > capacity_) return false;
    segments.push_back({next_address_, r.stream, small, {{want, false, 0}}});
    next_address_ += want;
    return place(size, small, r);
  }

  // The smallest free piece that is large enough, lowest address among equals.
  bool place(std::int64_t size, bool small, const MemoryRequest& r) {
    Segment* best_segment = nullptr;
    std::size_t best = 0;
    std::int64_t best_size = 0, best_address = 0;
    for (Segment& s : segments) {
      if (s.stream != r.stream || s.small != small) continue;
      std::int64_t address = s.address;
      for (std::size_t i = 0; i < s.pieces.size(); address += s.pieces[i].size, ++i) {
        const Piece& p = s.pieces[i];
        if (p.used || p.size < size) continue;
        if (best_segment && (p.size > best_size || (p.size == best_size && address > best_address))) continue;
        best_segment = &s;
        best = i;
        best_size = p.size;
        best_address = address;
      }
    }
    if (!best_segment) return false;
    std::vector<Piece>& pieces = best_segment->pieces;
    const std::int64_t rest = pieces[best].size - size;
    const bool split = small ? rest >= 512 : rest > (1 << 20);
    pieces[best] = {split ? size : pieces[best].size, true, r.id};
    if (split) pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1, {rest, false, 0});
    return true;
  }

  void release(MemoryId id) {
    for (Segment& s : segments) {
      for (Piece& p : s.pieces)
        if (p.used && p.owner == id) p.used = false;
      std::vector<Piece> merged;
      for (const Piece& p : s.pieces) {
        if (!merged.empty() && !merged.back().used && !p.used) {
          merged.back().size += p.size;
        } else {
          merged.push_back(p);
        }
      }
      s.pieces = merged;
    }
  }

  void drop_unused() {
    std::erase_if(segments, [](const Segment& s) { return s.pieces.size() == 1 && !s.pieces[0].used; });
  }

  std::int64_t capacity_;
  std::int64_t next_address_ = std::int64_t{1} << 40;
};

}  // namespace k3sim::testing
