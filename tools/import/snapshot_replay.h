// Replays a memory snapshot through the emulated allocator and says where the two part, if they do.
// Requests come from the trace: alloc, free_requested, free_completed that follows later (memory used on other
// streams), and a release of everything unused where the trace gives segments back. Addresses of new segments are the
// driver's choice, so they are taken from the trace; everything else - which block serves a request, when a segment is
// taken or mapped, the final segments and blocks - is the emulation's own and compared one by one. A trace that starts
// in the middle of a run is replayed from the state before its first event, which is found by undoing the trace from
// the final segments (block borders inside memory freed early are then the likely ones).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/import/memory_snapshot.h"

namespace k3sim {

struct ReplayDifference {
  std::size_t event = 0;  // index in the trace; the trace's length when only the final segments differ
  std::string expected;   // measured
  std::string got;        // emulated
};

struct ReplayReport {
  std::size_t requests = 0;  // alloc and free requests
  Bytes measured_peak_allocated;
  Bytes measured_peak_reserved;
  bool measured_from_statistics = true;  // false: derived from the trace
  Bytes emulated_peak_allocated;
  Bytes emulated_peak_reserved;
  std::size_t segment_events = 0;         // emulated, all equal to the measured ones when there is no difference
  std::size_t initial_segments = 0;       // segments that existed before the trace
  std::size_t private_pool_segments = 0;  // from CUDA-graph pools: a difference is then expected
  std::optional<ReplayDifference> first_difference;
};

struct ReplayOptions {
  int device = -1;                        // as load_memory_snapshot
  bool measured_addresses = true;         // false: the emulation chooses segment addresses (differences are expected)
  std::optional<std::string> alloc_conf;  // replay under other settings than the recorded ones
};

ReplayReport replay_snapshot(const MemorySnapshot& snapshot, const ReplayOptions& options = {});
ReplayReport replay_snapshot(const std::string& path, const ReplayOptions& options = {});

// The keys of product spec section 7 (compare --memory-snapshot --replay --json), indented.
std::string to_json(const ReplayReport& report);

}  // namespace k3sim
