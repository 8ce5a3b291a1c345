// Memory over the log: how much of each category is in use, who is alive at a moment, where it runs out.
// Category numbers are the caller's (request log); names are given here. "In use" counts block bytes from alloc to
// free, as the allocator's own statistic does; reserved comes from the segment events. Source: engine-design notes
// section 10 (peak attribution: who was alive at the peak).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/mem/emulate.h"

namespace k3sim {

struct CurvePoint {
  std::size_t request = 0;  // log position after which these amounts hold
  Bytes allocated;
  Bytes reserved;
  std::vector<Bytes> by_category;
};

struct CategoryAmount {
  std::string name;
  Bytes at_peak;  // when the sum over all categories is largest
  Bytes own_peak;
};

struct LiveAllocation {
  MemoryId id = 0;
  std::size_t request = 0;  // log position of its alloc
  Bytes bytes;              // block
  Bytes requested;
  std::uint8_t category = 0;
  std::uint32_t tag = 0;
};

struct MemoryTimeline {
  std::vector<std::string> categories;
  std::vector<CurvePoint> curve;           // at most max_points; each keeps the largest `allocated` of its stretch
  std::vector<CategoryAmount> breakdown;   // by category number
  std::size_t peak_request = 0;            // first log position with the largest allocated
  std::vector<LiveAllocation> at_peak;     // largest first
  std::vector<LiveAllocation> at_failure;  // alive when a request did not fit; empty when all fitted
};

struct TimelineOptions {
  std::vector<std::string> categories;  // names by number; missing ones become "category N"
  std::size_t max_points = 1000;
  std::size_t max_live = 50;  // length of the at_peak and at_failure lists
};

// Requires: `result` is emulate() of this log.
MemoryTimeline build_timeline(const RequestLog& log, const AllocatorResult& result, const TimelineOptions& options);

// Allocations alive after log position `request`, largest first (ties: older first), at most `limit` of them.
std::vector<LiveAllocation> alive_after(const RequestLog& log, const AllocatorResult& result, std::size_t request,
                                        std::size_t limit);

}  // namespace k3sim
