// Structural constants of the caching device allocator we emulate, in one versioned table.
// Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp (commit 001074d) and c10/core/AllocatorConfig.{h,cpp}
//         (commits 007b9bc, 065861f). Checked event by event against logs of torch 2.11.0+cu130 on an H200.
// Validity: the native CUDA backend; the cudaMallocAsync backend is another allocator and is not described here.
// A new upstream policy gets a new table and a new version number; old scenarios keep theirs.
#pragma once

#include <cstdint>

namespace k3sim {

struct AllocatorConstants {
  int version;                          // ours; a field of the scenario
  const char* upstream;                 // release the numbers were checked against
  std::int64_t min_block;               // every size is a multiple of this
  std::int64_t small_limit;             // rounded requests up to here live in the small pool
  std::int64_t small_segment;           // segment of the small pool; page of an expandable small range
  std::int64_t large_segment;           // segment for requests below min_large; page of an expandable large range
  std::int64_t min_large;               // from here on a request gets a segment of its own
  std::int64_t large_rounding;          // ... rounded up to this
  std::int64_t max_non_split_rounding;  // default of how much larger an unsplittable block may be than its request
  std::int64_t min_max_split_size;      // smallest legal max_split_size and max_non_split_rounding
  int power2_interval_first;            // log2 of the size at which roundup_power2_divisions interval 0 starts
  int power2_intervals;                 // number of intervals (1 MiB ... 64 GiB)
  std::int64_t address_space_shift;     // an expandable range spans total + total >> shift bytes
};

inline constexpr AllocatorConstants kAllocatorV1{
    .version = 1,
    .upstream = "torch 2.11 c10/cuda/CUDACachingAllocator.cpp",
    .min_block = 512,
    .small_limit = std::int64_t{1} << 20,
    .small_segment = std::int64_t{2} << 20,
    .large_segment = std::int64_t{20} << 20,
    .min_large = std::int64_t{10} << 20,
    .large_rounding = std::int64_t{2} << 20,
    .max_non_split_rounding = std::int64_t{20} << 20,
    .min_max_split_size = std::int64_t{20} << 20,
    .power2_interval_first = 20,
    .power2_intervals = 16,
    .address_space_shift = 3,
};

}  // namespace k3sim
