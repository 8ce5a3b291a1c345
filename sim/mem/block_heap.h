// Blocks of device memory and the free lists that hold them: the data the allocation policies work on.
// A segment (or a mapped stretch of an expandable range) is a doubly linked list of blocks; a free block is in the free
// list of its arena, one arena per (pool, stream); an unmapped block is in the arena's address-ordered set.
// Source: c10/cuda/CUDACachingAllocator.cpp (Block, BlockPool, try_merge_blocks).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/mem/free_list.h"
#include "sim/mem/request_log.h"

namespace k3sim {

using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = 0xffffffffU;

struct Block {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;   // size before rounding, while in use
  std::int64_t age_base = 0;    // arena's search count when it became free (garbage collection)
  BlockId previous = kNoBlock;  // neighbours in the same segment
  BlockId next = kNoBlock;
  std::uint32_t arena = 0;
  std::uint32_t pending_events = 0;  // deferred free: streams that still use it
  MemoryId owner = 0;
  bool live = false;  // slot in use
  bool allocated = false;
  bool mapped = true;       // false: address space without memory behind it
  bool expandable = false;  // part of an expandable range
};

struct Arena {
  MemoryStream stream = 0;
  bool small = false;
  FreeList free;
  std::map<std::int64_t, BlockId> unmapped;  // by address
};

class BlockHeap {
 public:
  Block& operator[](BlockId id) { return blocks_[id]; }
  const Block& operator[](BlockId id) const { return blocks_[id]; }
  std::size_t slots() const { return blocks_.size(); }

  // The arena of a pool and stream, made on first use.
  std::uint32_t arena_index(bool small, MemoryStream stream);
  Arena& arena(std::uint32_t index) { return arenas_[index]; }
  const Arena& arena(std::uint32_t index) const { return arenas_[index]; }
  // Arenas of one pool by ascending stream: the order in which upstream walks a pool.
  std::vector<std::uint32_t> arenas_of_pool(bool small) const;

  BlockId create(const Block& block);
  void destroy(BlockId id);
  void insert_free(BlockId id);
  void erase_free(BlockId id);
  void insert_unmapped(BlockId id) { arenas_[blocks_[id].arena].unmapped.emplace(blocks_[id].address, id); }
  void erase_unmapped(BlockId id) { arenas_[blocks_[id].arena].unmapped.erase(blocks_[id].address); }

  bool is_split(BlockId id) const { return blocks_[id].previous != kNoBlock || blocks_[id].next != kNoBlock; }
  // Free or unmapped, and no stream still uses it.
  bool is_available(BlockId id) const {
    return id != kNoBlock && !blocks_[id].allocated && blocks_[id].pending_events == 0;
  }
  // Links `inserted` between two neighbours (either may be kNoBlock).
  void splice(BlockId inserted, BlockId before, BlockId after);
  // Cuts the first `size` bytes off `id`; returns the new front block, `id` keeps the rest. Neither is in a list after.
  BlockId cut_front(BlockId id, std::int64_t size);
  // Lets `into` swallow its neighbour when that is available and mapped alike; the neighbour leaves its list.
  void try_merge(BlockId into, BlockId neighbour);

  // Counts best-fit searches per pool; ages of free blocks are differences of it.
  std::int64_t& searches(bool small) { return searches_[small ? 1 : 0]; }
  std::int64_t age(BlockId id) { return searches(arenas_[blocks_[id].arena].small) - blocks_[id].age_base; }

 private:
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  std::vector<Arena> arenas_;
  std::int64_t searches_[2] = {0, 0};
};

}  // namespace k3sim
