// Block bookkeeping; see the header. Slots are reused, so a BlockId is valid only while its block lives.
#include "sim/mem/block_heap.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

std::uint32_t BlockHeap::arena_index(bool small, MemoryStream stream) {
  for (std::uint32_t i = 0; i < arenas_.size(); ++i)
    if (arenas_[i].stream == stream && arenas_[i].small == small) return i;
  arenas_.emplace_back();
  arenas_.back().stream = stream;
  arenas_.back().small = small;
  return static_cast<std::uint32_t>(arenas_.size() - 1);
}

std::vector<std::uint32_t> BlockHeap::arenas_of_pool(bool small) const {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < arenas_.size(); ++i)
    if (arenas_[i].small == small) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return arenas_[a].stream < arenas_[b].stream; });
  return order;
}

BlockId BlockHeap::create(const Block& block) {
  BlockId id = static_cast<BlockId>(blocks_.size());
  if (unused_.empty()) {
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    blocks_[id] = block;
  }
  blocks_[id].live = true;
  return id;
}

void BlockHeap::destroy(BlockId id) {
  CS_CHECK(blocks_[id].live, "block {} destroyed twice", id);
  blocks_[id].live = false;
  unused_.push_back(id);
}

void BlockHeap::insert_free(BlockId id) {
  Block& b = blocks_[id];
  Arena& a = arenas_[b.arena];
  b.age_base = searches_[a.small ? 1 : 0];
  a.free.insert({b.size, b.address, id});
}

void BlockHeap::erase_free(BlockId id) {
  arenas_[blocks_[id].arena].free.erase(blocks_[id].size, blocks_[id].address);
}

void BlockHeap::splice(BlockId inserted, BlockId before, BlockId after) {
  blocks_[inserted].previous = before;
  blocks_[inserted].next = after;
  if (before != kNoBlock) blocks_[before].next = inserted;
  if (after != kNoBlock) blocks_[after].previous = inserted;
}

BlockId BlockHeap::cut_front(BlockId id, std::int64_t size) {
  Block front = blocks_[id];
  front.size = size;
  const BlockId front_id = create(front);
  splice(front_id, blocks_[id].previous, id);
  blocks_[id].address += size;
  blocks_[id].size -= size;
  return front_id;
}

void BlockHeap::try_merge(BlockId into, BlockId neighbour) {
  if (!is_available(neighbour) || blocks_[neighbour].mapped != blocks_[into].mapped) return;
  if (blocks_[neighbour].mapped) {
    erase_free(neighbour);
  } else {
    erase_unmapped(neighbour);
  }
  Block& b = blocks_[into];
  const Block& n = blocks_[neighbour];
  if (b.previous == neighbour) {
    b.address = n.address;
    b.previous = n.previous;
    if (b.previous != kNoBlock) blocks_[b.previous].next = into;
  } else {
    b.next = n.next;
    if (b.next != kNoBlock) blocks_[b.next].previous = into;
  }
  b.size += n.size;
  destroy(neighbour);
}

}  // namespace k3sim
