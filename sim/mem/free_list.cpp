// Sorted chunks: a full chunk splits in halves, an empty one disappears. See the header.
#include "sim/mem/free_list.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {
namespace {
constexpr std::size_t kChunkCapacity = 64;
}

FreeList::Cursor FreeList::find(const Entry& key) const {
  const auto chunk =
      std::partition_point(chunks_.begin(), chunks_.end(), [&](const std::vector<Entry>& c) { return c.back() < key; });
  if (chunk == chunks_.end()) return {chunks_.size(), 0};
  const auto entry = std::partition_point(chunk->begin(), chunk->end(), [&](const Entry& e) { return e < key; });
  return {static_cast<std::size_t>(chunk - chunks_.begin()), static_cast<std::size_t>(entry - chunk->begin())};
}

FreeList::Cursor FreeList::next(Cursor c) const {
  if (++c.offset < chunks_[c.chunk].size()) return c;
  return {c.chunk + 1, 0};
}

void FreeList::insert(const Entry& entry) {
  if (chunks_.empty()) {
    chunks_.emplace_back().reserve(kChunkCapacity);
    chunks_.back().push_back(entry);
    return;
  }
  Cursor c = find(entry);
  if (at_end(c)) c = {chunks_.size() - 1, chunks_.back().size()};
  std::vector<Entry>& chunk = chunks_[c.chunk];
  chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(c.offset), entry);
  if (chunk.size() < kChunkCapacity) return;
  const auto middle = chunk.begin() + static_cast<std::ptrdiff_t>(chunk.size() / 2);
  std::vector<Entry> upper;
  upper.reserve(kChunkCapacity);
  upper.assign(middle, chunk.end());
  chunk.erase(middle, chunk.end());
  chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(c.chunk) + 1, std::move(upper));
}

void FreeList::erase(std::int64_t size, std::int64_t address) {
  const Cursor c = find({size, address, 0});
  CS_CHECK(!at_end(c) && at(c).size == size && at(c).address == address, "free block {} at {} is not in its list", size,
           address);
  std::vector<Entry>& chunk = chunks_[c.chunk];
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(c.offset));
  if (chunk.empty()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(c.chunk));
}

}  // namespace k3sim
