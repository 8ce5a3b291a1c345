// Emulation of PyTorch's caching device allocator, block by block.
//   allocate: finished deferred frees return -> round -> best fit in the (pool, stream) free list -> else garbage
//   collection, a new segment (or more of an expandable range), oversize blocks released and retry, everything unused
//   released and retry, else out of memory. The block found is split when the policy allows.
//   free: merge with free neighbours of the same segment; deferred while another stream uses the memory.
// A pure state machine over requests: no clock, no randomness, ties by address. Streams are walked in ascending order
// where upstream walks a hash table (deferred frees of several streams).
// Source: c10/cuda/CUDACachingAllocator.cpp (malloc, get_free_block, alloc_block, free_block, garbage_collect_cached_
//         blocks, release_available_cached_blocks, release_cached_blocks). Not covered: graph-private pools, peers,
//         IPC.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/mem/allocator_policy.h"
#include "sim/mem/block_heap.h"
#include "sim/mem/request_log.h"
#include "sim/mem/segments.h"

namespace k3sim {

// A stream no program has; measured logs use it for memory that waits for streams the log does not name.
inline constexpr MemoryStream kForeignStream = -1;

enum class SegmentEventKind : std::uint8_t { kAlloc, kFree, kMap, kUnmap };

struct SegmentEvent {
  SegmentEventKind kind;
  std::int64_t address = 0;
  std::int64_t size = 0;
  MemoryStream stream = 0;
  std::size_t request = 0;  // log position that caused it
};

// A running amount and its largest value; `peak_request` is the first log position that reached the peak.
struct MemoryCounter {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::size_t peak_request = 0;
  void add(std::int64_t amount, std::size_t request) {
    current += amount;
    if (current > peak) {
      peak = current;
      peak_request = request;
    }
  }
};

struct AllocatorCounters {
  MemoryCounter allocated;  // handed out, rounded
  MemoryCounter requested;  // handed out, as asked
  MemoryCounter active;     // allocated plus deferred frees
  MemoryCounter reserved;   // taken from the driver
  int retries = 0;          // times everything unused was released to satisfy one request
};

class CachingAllocator {
 public:
  CachingAllocator(const AllocatorPolicy& policy, const DeviceMemory& device);

  // Log position stamped on the events and peaks of the following calls.
  void at_request(std::size_t request) { request_ = request; }
  // Starts from memory that is held already (a log that begins in the middle of a run): no events, counters count it.
  // Expandable segments of one pool and stream share a range that starts at the lowest of them. Blocks awaiting their
  // free wait for kForeignStream. Returns the blocks in use, segment by segment in block order.
  // Requires: nothing was allocated yet.
  std::vector<BlockId> adopt(std::vector<MemorySegment> segments, MemoryId first_owner);
  // Address the driver will return for the next new segment or expandable range (measured logs); negative: own choice.
  void expect_address(std::int64_t address) { expected_address_ = address; }

  // Returns the block, or kNoBlock when out of memory. Requires: bytes > 0.
  BlockId allocate(MemoryId owner, std::int64_t bytes, MemoryStream stream);
  void use_on_stream(BlockId block, MemoryStream stream);
  void free(BlockId block);
  void stream_passed(MemoryStream stream, std::size_t through);
  // Completes the deferred free of this owner's block; nothing when it is not waiting.
  void complete_free(MemoryId owner);
  void empty_cache() { release_cached(); }

  const BlockHeap& heap() const { return heap_; }
  const AllocatorCounters& counters() const { return counters_; }
  const std::vector<SegmentEvent>& segment_events() const { return events_; }
  // Owners of deferred frees that completed since the last call, in order (for comparison with measured logs).
  std::vector<MemoryId> take_completed();

 private:
  friend class ExpandableSegments;
  struct Wanted {
    std::int64_t size;  // rounded
    std::int64_t segment;
    std::uint32_t arena;
  };
  struct PendingEvent {
    BlockId block;
    std::size_t recorded_at;
  };

  void process_events();
  void synchronize_events();
  void finish_event(BlockId block);
  BlockId find_free(const Wanted& wanted);
  BlockId new_segment(const Wanted& wanted);
  BlockId grow(const Wanted& wanted);
  BlockId hand_out(BlockId block, std::int64_t size);
  void collect_garbage();
  bool release_oversize(const Wanted& wanted);
  void release_cached();
  void release_pool(bool small);
  void release_block(BlockId block);
  void free_block(BlockId block);
  BlockId adopt_block(const SegmentBlock& block, BlockId at, MemoryId owner);
  void record(SegmentEventKind kind, const Block& block, std::int64_t address, std::int64_t size);
  std::int64_t new_address(std::int64_t size);
  std::int64_t expandable_range_size(bool small) const;
  bool tracks_age() const { return fraction_limit_ > 0 && policy_.garbage_collection_threshold > 0.0; }

  AllocatorPolicy policy_;
  DeviceMemory device_;
  std::int64_t fraction_limit_ = 0;  // 0: no memory_fraction
  BlockHeap heap_;
  AllocatorCounters counters_;
  std::vector<SegmentEvent> events_;
  std::size_t request_ = 0;
  std::int64_t expected_address_ = -1;
  std::int64_t next_address_;

  std::map<BlockId, std::vector<MemoryStream>> stream_uses_;  // blocks in use on other streams too
  std::map<MemoryStream, std::deque<PendingEvent>> pending_;  // frees waiting for a stream, oldest first
  std::map<MemoryStream, std::int64_t> passed_;               // log position each stream has passed
  std::vector<MemoryId> completed_;
};

}  // namespace k3sim
