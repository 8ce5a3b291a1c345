#include "sim/mem/allocator_policy.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/base/error.h"

using namespace k3sim;

TEST_CASE("policy: requests round up to 512 bytes") {
  const AllocatorPolicy policy;
  CHECK(round_request(policy, 1) == 512);
  CHECK(round_request(policy, 512) == 512);
  CHECK(round_request(policy, 513) == 1024);
  CHECK(round_request(policy, (std::int64_t{5} << 30) + 1) == (std::int64_t{5} << 30) + 512);
}

TEST_CASE("policy: power-of-two divisions round to the next step between powers of two") {
  const AllocatorPolicy policy = parse_alloc_conf("roundup_power2_divisions:4");
  CHECK(round_request(policy, 2048) == 2048);  // not above 512 * 4: plain rounding
  CHECK(round_request(policy, 5000) == 5120);  // 4096, 5120, 6144, 7168
  CHECK(round_request(policy, 4096) == 4096);
  CHECK(round_request(policy, (100 << 20) + 1) == (112 << 20));  // 64, 80, 96, 112 MiB
}

TEST_CASE("policy: divisions may differ by size interval") {
  const AllocatorPolicy policy = parse_alloc_conf("roundup_power2_divisions:[256:1, 512:2, 1024:4, >:8]");
  const std::int64_t mib = 1 << 20;
  CHECK(round_request(policy, 300 * mib + 1) == 300 * mib + 512);  // 256 MiB interval: 1 division is off
  CHECK(round_request(policy, 520 * mib) == 768 * mib);            // halves
  CHECK(round_request(policy, 1100 * mib) == 1152 * mib);          // '>' overrides from the last interval on: eighths
  CHECK(round_request(policy, 2100 * mib) == 2304 * mib);
}

TEST_CASE("policy: segment sizes are 2 MiB, 20 MiB, then multiples of 2 MiB") {
  const AllocatorPolicy policy;
  CHECK(segment_size(policy, 512) == 2 << 20);
  CHECK(segment_size(policy, 1 << 20) == 2 << 20);
  CHECK(segment_size(policy, (1 << 20) + 512) == 20 << 20);
  CHECK(segment_size(policy, (10 << 20) - 512) == 20 << 20);
  CHECK(segment_size(policy, 10 << 20) == 10 << 20);
  CHECK(segment_size(policy, (11 << 20) + 512) == 12 << 20);
}

TEST_CASE("policy: the settings string is read as PyTorch reads it") {
  const AllocatorPolicy policy = parse_alloc_conf(
      "expandable_segments:True, "
      "max_split_size_mb:128,garbage_collection_threshold:0.8,per_process_memory_fraction:0.5,"
      "pinned_use_background_threads:True");
  CHECK(policy.expandable_segments);
  CHECK(policy.max_split_size == Bytes::mib(128));
  CHECK(policy.garbage_collection_threshold == 0.8);
  CHECK(policy.memory_fraction == 0.5);
  CHECK_FALSE(parse_alloc_conf("").expandable_segments);
}

TEST_CASE("policy: wrong settings are refused with the key and a suggestion") {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_alloc_conf(text);
    } catch (const ConfigError& e) {
      return to_string(e.problems().at(0));
    }
    return "accepted";
  };
  CHECK(message("expandable_segment:True").find("did you mean 'expandable_segments'?") != std::string::npos);
  CHECK(message("max_split_size_mb:19").find("too small, at least 20 MiB") != std::string::npos);
  CHECK(message("max_split_size_mb:abc").find("not a whole number") != std::string::npos);
  CHECK(message("garbage_collection_threshold:1.0").find("(0, 1)") != std::string::npos);
  CHECK(message("roundup_power2_divisions:3").find("power of two") != std::string::npos);
  CHECK(message("roundup_power2_divisions:[256:1").find("']'") != std::string::npos);
  CHECK(message("backend:cudaMallocAsync").find("not emulated") != std::string::npos);
  CHECK(message("expandable_segments").find("KEY:VALUE") != std::string::npos);
}
