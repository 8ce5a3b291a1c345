// Two logs of a real training run (torch 2.11, one H200): every segment event, every address handed out, the final
// segments and blocks and both peaks must come out of the emulation exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tools/import/snapshot_replay.h"

using namespace k3sim;

namespace {
std::string data(const std::string& name) {
  return std::string(K3SIM_TEST_DATA) + "/allocator/" + name;
}
}  // namespace

TEST_CASE("golden: the default policy's log is reproduced event by event") {
  const ReplayReport r = replay_snapshot(data("allocator_default.json.gz"));
  CAPTURE(to_json(r));
  CHECK_FALSE(r.first_difference);
  CHECK(r.requests == 15723);
  CHECK(r.segment_events == 190);
  CHECK(r.emulated_peak_allocated == Bytes(32761817088));
  CHECK(r.emulated_peak_reserved == Bytes(35418800128));
  CHECK(r.measured_peak_allocated == r.emulated_peak_allocated);
  CHECK(r.measured_peak_reserved == r.emulated_peak_reserved);
}

TEST_CASE("golden: the expandable log is reproduced event by event") {
  const ReplayReport r = replay_snapshot(data("allocator_expandable.json.gz"));
  CAPTURE(to_json(r));
  CHECK_FALSE(r.first_difference);
  CHECK(r.segment_events == 259);
  CHECK(r.emulated_peak_allocated == Bytes(32761817088));
  CHECK(r.emulated_peak_reserved == Bytes(33527169024));
}

TEST_CASE("golden: with addresses of our own choice the peaks stay the same") {
  for (const char* name : {"allocator_default.json.gz", "allocator_expandable.json.gz"}) {
    const ReplayReport r = replay_snapshot(data(name), {.measured_addresses = false, .alloc_conf = {}});
    CHECK(r.emulated_peak_allocated == r.measured_peak_allocated);
    CHECK(r.emulated_peak_reserved == r.measured_peak_reserved);
  }
}

TEST_CASE("golden: the default log's requests under expandable segments need what the expandable run reserved") {
  const ReplayReport r = replay_snapshot(data("allocator_default.json.gz"), {.alloc_conf = "expandable_segments:True"});
  CHECK(r.emulated_peak_reserved == Bytes(33527169024));
}

TEST_CASE("golden: a recording that starts in the middle of the run replays exactly from there") {
  for (const char* name : {"allocator_default.json.gz", "allocator_expandable.json.gz"}) {
    const MemorySnapshot whole = load_memory_snapshot(data(name));
    for (const std::ptrdiff_t start : {500, 3000, 9000, 15000, 20000}) {
      MemorySnapshot late = whole;
      late.peak_allocated.reset();
      late.peak_reserved.reset();
      late.trace.erase(late.trace.begin(), late.trace.begin() + start);
      const ReplayReport r = replay_snapshot(late);
      CAPTURE(name);
      CAPTURE(start);
      CAPTURE(to_json(r));
      CHECK(r.initial_segments > 0);
      CHECK_FALSE(r.first_difference);
      CHECK(r.emulated_peak_reserved == r.measured_peak_reserved);
    }
  }
}

TEST_CASE("golden: a changed request size is found at its event") {
  MemorySnapshot s = load_memory_snapshot(data("allocator_default.json.gz"));
  const auto at = std::find_if(s.trace.begin() + 400, s.trace.end(), [](const SnapshotEvent& e) {
    return e.action == SnapshotAction::kAlloc && e.size > (64 << 20);
  });
  const auto index = static_cast<std::size_t>(at - s.trace.begin());
  at->size += 40 << 20;
  const ReplayReport r = replay_snapshot(s);
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->event <= index);
  CHECK(r.first_difference->event + 3 >= index);
}

TEST_CASE("golden: a removed segment event is found where the emulation makes it") {
  MemorySnapshot s = load_memory_snapshot(data("allocator_expandable.json.gz"));
  const auto at = std::find_if(s.trace.begin() + 300, s.trace.end(),
                               [](const SnapshotEvent& e) { return e.action == SnapshotAction::kSegmentMap; });
  const auto index = static_cast<std::size_t>(at - s.trace.begin());
  s.trace.erase(at);
  const ReplayReport r = replay_snapshot(s);
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->event == index);
  CHECK(r.first_difference->got.find("segment_map") != std::string::npos);
}
