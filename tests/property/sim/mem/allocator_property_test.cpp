// Invariants of the allocator emulation on random logs, and agreement with a plain second implementation.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/mem/emulate.h"
#include "tests/property/sim/mem/allocator_oracle.h"
#include "tests/property/sim/mem/expandable_oracle.h"
#include "tests/property/sim/mem/random_log.h"

using namespace k3sim;
using namespace k3sim::testing;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
const DeviceMemory kLarge{.total = Bytes::gib(100)};

std::vector<AllocatorPolicy> policies() {
  return {parse_alloc_conf(""), parse_alloc_conf("expandable_segments:True"), parse_alloc_conf("max_split_size_mb:24"),
          parse_alloc_conf("roundup_power2_divisions:4"),
          parse_alloc_conf("garbage_collection_threshold:0.3,per_process_memory_fraction:0.01")};
}

std::int64_t reserved_by_events(const AllocatorResult& r) {
  std::int64_t sum = 0;
  for (const SegmentEvent& e : r.segment_events)
    sum += e.kind == SegmentEventKind::kAlloc || e.kind == SegmentEventKind::kMap ? e.size : -e.size;
  return sum;
}

// Used memory does not overlap, lies in segments, and everything sums up.
void check_conservation(const AllocatorResult& r) {
  std::int64_t reserved = 0, allocated = 0, active = 0, end = 0;
  for (const MemorySegment& s : r.segments) {
    REQUIRE(s.address >= end);
    end = s.address + s.total_size;
    std::int64_t sum = 0;
    for (const SegmentBlock& b : s.blocks) {
      REQUIRE(b.size > 0);
      REQUIRE(b.size % 512 == 0);
      REQUIRE(b.requested <= b.size);
      sum += b.size;
    }
    REQUIRE(sum == s.total_size);
    reserved += s.total_size;
    allocated += s.allocated_size;
    active += s.active_size;
  }
  REQUIRE(reserved == r.counters.reserved.current);
  REQUIRE(allocated == r.counters.allocated.current);
  REQUIRE(active == r.counters.active.current);
  REQUIRE(reserved == reserved_by_events(r));
}

// No two neighbouring free blocks in one segment: what is freed merges.
void check_merged(const AllocatorResult& r) {
  for (const MemorySegment& s : r.segments)
    for (std::size_t i = 1; i < s.blocks.size(); ++i) {
      const bool both_free =
          s.blocks[i - 1].state == BlockState::kInactive && s.blocks[i].state == BlockState::kInactive;
      REQUIRE_FALSE(both_free);
    }
}

}  // namespace

TEST_CASE("property: memory is conserved, never overlaps and merges when freed, under every policy") {
  for (const AllocatorPolicy& policy : policies())
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      const RequestLog log = random_log({.seed = seed, .other_streams = seed % 2 == 1, .empty_cache = seed % 3 == 0});
      const AllocatorResult roomy = emulate(log, policy, kLarge);
      check_conservation(roomy);
      check_merged(roomy);
      const DeviceMemory tight{.total = Bytes::gib(100), .available = Bytes::mib(300)};
      const AllocatorResult squeezed = emulate(log, policy, tight);
      check_conservation(squeezed);
      check_merged(squeezed);
      REQUIRE(squeezed.counters.reserved.peak <= 300 * kMiB);
    }
}

TEST_CASE("property: allocated memory follows from the log alone and reserved covers it at every moment") {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    const RequestLog log = random_log({.seed = seed});
    const AllocatorResult r = emulate(log, {}, kLarge);
    std::int64_t allocated = 0, reserved = 0;
    std::size_t event = 0;
    for (std::size_t i = 0; i < log.size(); ++i) {
      const MemoryRequest& q = log.requests()[i];
      if (q.kind == MemoryRequestKind::kAlloc) allocated += r.block_bytes[q.id];
      if (q.kind == MemoryRequestKind::kFree) allocated -= r.block_bytes[q.id];
      for (; event < r.segment_events.size() && r.segment_events[event].request <= i; ++event)
        reserved += r.segment_events[event].size;
      REQUIRE(reserved >= allocated);
      REQUIRE(allocated <= r.counters.allocated.peak);
    }
    REQUIRE(allocated == r.counters.allocated.current);
  }
}

TEST_CASE("property: the same log gives the same result twice") {
  const RequestLog log = random_log({.seed = 5, .requests = 2000, .other_streams = true, .empty_cache = true});
  for (const AllocatorPolicy& policy : policies()) {
    const AllocatorResult a = emulate(log, policy, kLarge), b = emulate(log, policy, kLarge);
    REQUIRE(a.segments.size() == b.segments.size());
    REQUIRE(a.counters.reserved.peak_request == b.counters.reserved.peak_request);
    REQUIRE(a.block_bytes == b.block_bytes);
  }
}

TEST_CASE("property: the default policy equals a plain implementation that searches everything") {
  int retries = 0, failures = 0;
  for (std::uint64_t seed = 200; seed < 320; ++seed) {
    CAPTURE(seed);
    const RequestLog log = random_log({.seed = seed, .requests = 300, .live = 25, .empty_cache = seed % 4 == 0});
    const std::int64_t capacity = (seed % 2 == 0 ? 100'000 : 350) * kMiB;
    const DeviceMemory device{.total = Bytes::gib(100), .available = Bytes(capacity)};
    const AllocatorResult r = emulate(log, {}, device);
    AllocatorOracle oracle(capacity);
    retries += r.counters.retries;
    failures += r.out_of_memory ? 1 : 0;
    REQUIRE(oracle.run(log) == !r.out_of_memory.has_value());
    REQUIRE(oracle.peak_reserved == r.counters.reserved.peak);
    REQUIRE(oracle.peak_allocated == r.counters.allocated.peak);
    std::sort(oracle.segments.begin(), oracle.segments.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    REQUIRE(oracle.segments.size() == r.segments.size());
    for (std::size_t i = 0; i < r.segments.size(); ++i) {
      REQUIRE(oracle.segments[i].pieces.size() == r.segments[i].blocks.size());
      REQUIRE(oracle.segments[i].stream == r.segments[i].stream);
      for (std::size_t b = 0; b < r.segments[i].blocks.size(); ++b) {
        REQUIRE(oracle.segments[i].pieces[b].size == r.segments[i].blocks[b].size);
        REQUIRE(oracle.segments[i].pieces[b].used == (r.segments[i].blocks[b].state == BlockState::kAllocated));
      }
    }
  }
  CHECK(retries > 20);  // the tight device was tight
  CHECK(failures > 5);
}

TEST_CASE("property: expandable segments equal a plain implementation that searches everything") {
  const AllocatorPolicy policy = parse_alloc_conf("expandable_segments:True");
  int retries = 0, failures = 0;
  for (std::uint64_t seed = 500; seed < 620; ++seed) {
    CAPTURE(seed);
    const RequestLog log = random_log({.seed = seed, .requests = 300, .live = 25, .empty_cache = seed % 3 == 0});
    const std::int64_t capacity = (seed % 2 == 0 ? 100'000 : 330) * kMiB;
    const DeviceMemory device{.total = Bytes::gib(100), .available = Bytes(capacity)};
    const AllocatorResult r = emulate(log, policy, device);
    ExpandableOracle oracle(device.total.count(), capacity);
    retries += r.counters.retries;
    failures += r.out_of_memory ? 1 : 0;
    REQUIRE(oracle.run(log) == !r.out_of_memory.has_value());
    REQUIRE(oracle.peak_reserved == r.counters.reserved.peak);
    std::vector<std::tuple<bool, MemoryStream, std::int64_t, bool>> got;
    for (const MemorySegment& s : r.segments)
      for (const SegmentBlock& b : s.blocks)
        got.emplace_back(s.small, s.stream, b.size, b.state != BlockState::kInactive);
    const auto by_range = [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    };
    std::stable_sort(got.begin(), got.end(), by_range);  // within a range by address, as listed
    REQUIRE(got == oracle.mapped_pieces());
  }
  CHECK(retries > 20);  // the tight device was tight
  CHECK(failures > 5);
}

TEST_CASE("property: expandable segments never reserve more than separate ones on logs that only grow") {
  const AllocatorPolicy expandable = parse_alloc_conf("expandable_segments:True");
  for (std::uint64_t seed = 400; seed < 460; ++seed) {
    CAPTURE(seed);
    RequestLog log;
    const RandomKey key{.seed = seed};
    for (std::uint64_t i = 0; i < 150; ++i) {
      const std::uint64_t scale = std::uint64_t{1} << random_below(key, 2 * i, 27);
      log.alloc({.bytes = Bytes(static_cast<std::int64_t>(scale + random_below(key, 2 * i + 1, scale)))});
    }
    const std::int64_t grown = emulate(log, expandable, kLarge).counters.reserved.peak;
    const std::int64_t separate = emulate(log, {}, kLarge).counters.reserved.peak;
    REQUIRE(grown <= separate + 20 * kMiB);  // the last 20 MiB page may be nearly empty
  }
}
