// What a user can set on the caching allocator, and the two pure size rules that follow from it.
//   round_request: below 512 B -> 512; with d > 1 divisions and size > 512 d, up to the next of d steps between powers
//   of
//                  two; otherwise up to a multiple of 512.
//   segment_size:  <= 1 MiB -> 2 MiB; < 10 MiB -> 20 MiB; otherwise up to a multiple of 2 MiB.
// Source: c10/cuda/CUDACachingAllocator.cpp (round_size, get_allocation_size), c10/core/AllocatorConfig.cpp
// (parseArgs).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "sim/base/units.h"
#include "sim/mem/allocator_constants.h"

namespace k3sim {

struct AllocatorPolicy {
  const AllocatorConstants* constants = &kAllocatorV1;
  bool expandable_segments = false;
  Bytes max_split_size = Bytes(std::numeric_limits<std::int64_t>::max());  // max(): every block may be split
  Bytes max_non_split_rounding = Bytes(kAllocatorV1.max_non_split_rounding);
  double garbage_collection_threshold = 0.0;  // 0: off; only acts together with memory_fraction, as upstream
  double memory_fraction = 0.0;               // 0: not set; else share of the device this process may reserve
  std::array<std::int64_t, 16> roundup_power2_divisions{};  // by interval 1 MiB, 2 MiB ... ; 0 or 1: off
};

// The device as the allocator sees it.
struct DeviceMemory {
  Bytes total = Bytes::gib(140);                                      // sizes the address range of expandable segments
  Bytes available = Bytes(std::numeric_limits<std::int64_t>::max());  // total minus what lives outside the allocator
};

// Reads the text of PYTORCH_ALLOC_CONF, for example "expandable_segments:True,max_split_size_mb:128". Throws
// ConfigError for unknown keys, bad values and other backends; options that do not change device memory are accepted
// and ignored.
AllocatorPolicy parse_alloc_conf(const std::string& text);

// Requires: size > 0. Ensures: a multiple of 512, at least size.
std::int64_t round_request(const AllocatorPolicy& policy, std::int64_t size);

// Size asked of the driver for a rounded request (default policy).
std::int64_t segment_size(const AllocatorPolicy& policy, std::int64_t rounded);

}  // namespace k3sim
