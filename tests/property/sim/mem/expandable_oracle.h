// A second, deliberately plain allocator with expandable segments: a range is a list of used, free and unmapped pieces,
// every search walks all of it. Shares no code with the emulation except the log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/mem/request_log.h"

namespace k3sim::testing {

class ExpandableOracle {
 public:
  enum class State { kUsed, kFree, kUnmapped };
  struct Piece {
    std::int64_t size;
    State state;
    MemoryId owner;
  };
  using Range = std::vector<Piece>;

  ExpandableOracle(std::int64_t total, std::int64_t capacity) : total_(total), capacity_(capacity) {}

  bool run(const RequestLog& log) {
    for (const MemoryRequest& r : log.requests()) {
      if (r.kind == MemoryRequestKind::kAlloc && !allocate(r)) return false;
      if (r.kind == MemoryRequestKind::kFree) {
        for (auto& [key, range] : ranges)
          for (Piece& p : range)
            if (p.state == State::kUsed && p.owner == r.id) p.state = State::kFree;
        tidy();
      }
      if (r.kind == MemoryRequestKind::kEmptyCache) unmap_unused();
    }
    return true;
  }

  // Sizes and states of mapped pieces, range by range: (small, stream, size, used).
  std::vector<std::tuple<bool, MemoryStream, std::int64_t, bool>> mapped_pieces() const {
    std::vector<std::tuple<bool, MemoryStream, std::int64_t, bool>> out;
    for (const auto& [key, range] : ranges)
      for (const Piece& p : range)
        if (p.state != State::kUnmapped) out.emplace_back(key.first, key.second, p.size, p.state == State::kUsed);
    return out;
  }
  std::int64_t reserved() const {
    std::int64_t sum = 0;
    for (const auto& piece : mapped_pieces()) sum += std::get<2>(piece);
    return sum;
  }

  std::map<std::pair<bool, MemoryStream>, Range> ranges;
  std::int64_t peak_reserved = 0;

 private:
  static std::int64_t page_of(bool small) { return std::int64_t{small ? 2 : 20} << 20; }

  bool allocate(const MemoryRequest& r) {
    const std::int64_t size = (r.value + 511) / 512 * 512;
    const bool small = size <= (1 << 20);
    const std::int64_t page = page_of(small);
    const auto key = std::make_pair(small, r.stream);
    std::size_t at = 0;
    if (!best_fit(key, size, at)) {
      if (!extend(key, size, page, at)) {
        unmap_unused();
        if (!extend(key, size, page, at)) return false;
      }
    }
    Range& range = ranges[key];
    const std::int64_t rest = range[at].size - size;
    range[at] = {size, State::kUsed, r.id};
    if (rest > 0) range.insert(range.begin() + static_cast<std::ptrdiff_t>(at) + 1, {rest, State::kFree, 0});
    return true;
  }

  bool best_fit(const std::pair<bool, MemoryStream>& key, std::int64_t size, std::size_t& at) {
    const Range& range = ranges[key];
    std::vector<std::pair<std::int64_t, std::size_t>> fitting;  // by size, then position
    for (std::size_t i = 0; i < range.size(); ++i)
      if (range[i].state == State::kFree && range[i].size >= size) fitting.emplace_back(range[i].size, i);
    if (fitting.empty()) return false;
    std::sort(fitting.begin(), fitting.end());
    const auto reach = [&](std::size_t i) {
      const bool grows = i + 1 < range.size() && range[i + 1].state == State::kUnmapped;
      return range[i].size + (grows ? range[i + 1].size : 0);
    };
    at = fitting[0].second;
    for (std::size_t k = 1; k < fitting.size() && reach(fitting[k].second) < reach(at); ++k) at = fitting[k].second;
    return true;
  }

  // Maps pages behind the first stretch of free and unmapped pieces that is long enough; `at`: the free piece made.
  bool extend(const std::pair<bool, MemoryStream>& key, std::int64_t size, std::int64_t page, std::size_t& at) {
    Range& range = ranges[key];
    if (range.empty()) range.push_back({(total_ + total_ / 8 + page - 1) / page * page, State::kUnmapped, 0});
    for (std::size_t i = 0; i < range.size(); ++i) {
      if (range[i].state != State::kUnmapped) continue;
      at = i > 0 && range[i - 1].state == State::kFree ? i - 1 : i;
      std::int64_t length = 0;
      for (std::size_t k = at; k < range.size() && range[k].state != State::kUsed; ++k) length += range[k].size;
      if (length >= size) return map_from(range, at, size, page);
    }
    return false;
  }

  bool map_from(Range& range, std::size_t at, std::int64_t size, std::int64_t page) {
    for (;;) {
      if (range[at].state == State::kFree && range[at].size >= size) return true;
      const std::size_t target = range[at].state == State::kFree ? at + 1 : at;
      const std::int64_t have = target == at ? 0 : range[at].size;
      const std::int64_t wanted = (std::min(size - have, range[target].size) + page - 1) / page * page;
      if (reserved() + wanted > capacity_) return false;
      const std::int64_t rest = range[target].size - wanted;
      range[target] = {wanted, State::kFree, 0};
      if (rest > 0) range.insert(range.begin() + static_cast<std::ptrdiff_t>(target) + 1, {rest, State::kUnmapped, 0});
      tidy();
      peak_reserved = std::max(peak_reserved, reserved());
    }
  }

  void unmap_unused() {
    for (auto& [key, range] : ranges) {
      const std::int64_t page = page_of(key.first);
      Range cut;
      std::int64_t address = 0;
      for (const Piece& p : range) {
        const std::int64_t begin = (address + page - 1) / page * page, end = (address + p.size) / page * page;
        if (p.state == State::kFree && begin < end) {
          if (begin > address) cut.push_back({begin - address, State::kFree, 0});
          cut.push_back({end - begin, State::kUnmapped, 0});
          if (address + p.size > end) cut.push_back({address + p.size - end, State::kFree, 0});
        } else {
          cut.push_back(p);
        }
        address += p.size;
      }
      range = cut;
    }
    tidy();
  }

  // Joins neighbours that are both free or both unmapped.
  void tidy() {
    for (auto& [key, range] : ranges) {
      Range joined;
      for (const Piece& p : range) {
        if (!joined.empty() && joined.back().state == p.state && p.state != State::kUsed) {
          joined.back().size += p.size;
        } else {
          joined.push_back(p);
        }
      }
      range = joined;
    }
  }

  std::int64_t total_;
  std::int64_t capacity_;
};

}  // namespace k3sim::testing
