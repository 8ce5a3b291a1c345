// One pass over the log for the curve, one more for each list of live allocations. See the header.
#include "sim/mem/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {
namespace {

// Amounts in use while walking the log.
class Walk {
 public:
  Walk(const RequestLog& log, const AllocatorResult& result)
      : log_(log), result_(result), category_(log.allocations(), 0), amounts_(256, 0) {}

  void step(std::size_t position) {
    const MemoryRequest& r = log_.requests()[position];
    if (r.kind == MemoryRequestKind::kAlloc) {
      category_[r.id] = r.category;
      add(r.category, result_.block_bytes[r.id]);
    } else if (r.kind == MemoryRequestKind::kFree) {
      add(category_[r.id], -result_.block_bytes[r.id]);
    }
    for (; next_event_ < result_.segment_events.size() && result_.segment_events[next_event_].request <= position;
         ++next_event_) {
      const SegmentEvent& e = result_.segment_events[next_event_];
      const bool taken = e.kind == SegmentEventKind::kAlloc || e.kind == SegmentEventKind::kMap;
      reserved_ += taken ? e.size : -e.size;
    }
  }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t amount(std::size_t category) const { return amounts_[category]; }
  CurvePoint point(std::size_t position, std::size_t categories) const {
    CurvePoint p{position, Bytes(allocated_), Bytes(reserved_), {}};
    for (std::size_t c = 0; c < categories; ++c) p.by_category.push_back(Bytes(amounts_[c]));
    return p;
  }

 private:
  void add(std::uint8_t category, std::int64_t bytes) {
    amounts_[category] += bytes;
    allocated_ += bytes;
  }

  const RequestLog& log_;
  const AllocatorResult& result_;
  std::vector<std::uint8_t> category_;
  std::vector<std::int64_t> amounts_;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::size_t next_event_ = 0;
};

std::vector<std::string> category_names(const RequestLog& log, const std::vector<std::string>& given) {
  std::size_t count = given.size();
  for (const MemoryRequest& r : log.requests())
    if (r.kind == MemoryRequestKind::kAlloc) count = std::max<std::size_t>(count, r.category + std::size_t{1});
  std::vector<std::string> names = given;
  while (names.size() < count) names.push_back(fmt::format("category {}", names.size()));
  return names;
}

}  // namespace

std::vector<LiveAllocation> alive_after(const RequestLog& log, const AllocatorResult& result, std::size_t request,
                                        std::size_t limit) {
  std::vector<bool> freed(log.allocations(), false);
  const std::size_t end = std::min(request + 1, log.size());
  for (std::size_t i = 0; i < end; ++i)
    if (log.requests()[i].kind == MemoryRequestKind::kFree) freed[log.requests()[i].id] = true;
  std::vector<LiveAllocation> live;
  for (std::size_t i = 0; i < end; ++i) {
    const MemoryRequest& r = log.requests()[i];
    if (r.kind != MemoryRequestKind::kAlloc || freed[r.id] || result.block_bytes[r.id] == 0) continue;
    live.push_back({r.id, i, Bytes(result.block_bytes[r.id]), Bytes(r.value), r.category, r.tag});
  }
  std::sort(live.begin(), live.end(), [](const LiveAllocation& a, const LiveAllocation& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  });
  if (live.size() > limit) live.resize(limit);
  return live;
}

MemoryTimeline build_timeline(const RequestLog& log, const AllocatorResult& result, const TimelineOptions& options) {
  CS_CHECK(result.block_bytes.size() == log.allocations(), "the result has {} allocations, the log {}",
           result.block_bytes.size(), log.allocations());
  MemoryTimeline timeline;
  timeline.categories = category_names(log, options.categories);
  const std::size_t categories = timeline.categories.size();
  for (const std::string& name : timeline.categories) timeline.breakdown.push_back({name, {}, {}});
  // The failing request and everything after it never happened.
  const std::size_t end = result.out_of_memory ? result.out_of_memory->request : log.size();
  const std::size_t stretch = std::max<std::size_t>(1, end / std::max<std::size_t>(1, options.max_points) + 1);
  Walk walk(log, result);
  std::int64_t peak = -1;
  std::int64_t stretch_peak = -1;
  for (std::size_t i = 0; i < end; ++i) {
    walk.step(i);
    const bool new_stretch = i % stretch == 0;
    if (new_stretch) timeline.curve.emplace_back();
    if (new_stretch || walk.allocated() > stretch_peak) {
      stretch_peak = walk.allocated();
      timeline.curve.back() = walk.point(i, categories);
    }
    for (std::size_t c = 0; c < categories; ++c)
      timeline.breakdown[c].own_peak = std::max(timeline.breakdown[c].own_peak, Bytes(walk.amount(c)));
    if (walk.allocated() <= peak) continue;
    peak = walk.allocated();
    timeline.peak_request = i;
    for (std::size_t c = 0; c < categories; ++c) timeline.breakdown[c].at_peak = Bytes(walk.amount(c));
  }
  timeline.at_peak = alive_after(log, result, timeline.peak_request, options.max_live);
  if (result.out_of_memory)
    timeline.at_failure = alive_after(log, result, result.out_of_memory->request, options.max_live);
  return timeline;
}

}  // namespace k3sim
