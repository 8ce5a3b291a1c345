// What an allocator holds at one moment: its segments and their blocks, in the form of torch.cuda.memory_snapshot().
// Source: c10/cuda/CUDACachingAllocator.cpp (snapshot): one segment per driver allocation, or per contiguous mapped
// stretch of an expandable range; sorted by address.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/mem/block_heap.h"
#include "sim/mem/request_log.h"

namespace k3sim {

enum class BlockState : std::uint8_t { kInactive, kAllocated, kAwaitingFree };

struct SegmentBlock {
  std::int64_t size = 0;
  std::int64_t requested = 0;
  BlockState state = BlockState::kInactive;
  friend bool operator==(const SegmentBlock&, const SegmentBlock&) = default;
};

// One driver allocation, or one contiguous mapped stretch of an expandable range.
struct MemorySegment {
  std::int64_t address = 0;
  std::int64_t total_size = 0;
  std::int64_t allocated_size = 0;
  std::int64_t active_size = 0;
  MemoryStream stream = 0;
  bool small = false;
  bool expandable = false;
  std::vector<SegmentBlock> blocks;  // by address, without gaps
};

// Segments and blocks of an allocator, sorted by address. Throws InternalError when its lists are inconsistent.
std::vector<MemorySegment> list_segments(const BlockHeap& heap);

}  // namespace k3sim
