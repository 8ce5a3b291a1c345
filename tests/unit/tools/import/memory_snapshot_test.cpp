#include "tools/import/memory_snapshot.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/base/error.h"
#include "tools/import/snapshot_replay.h"

using namespace k3sim;

namespace {

std::string data(const std::string& name) {
  return std::string(K3SIM_TEST_DATA) + "/allocator/" + name;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file that is removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes)
      : path_((std::filesystem::temp_directory_path() / "k3sim_memory_snapshot_test.bin").string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string refusal(const std::string& path) {
  try {
    load_memory_snapshot(path);
  } catch (const ConfigError& e) {
    return to_string(e.problems().at(0));
  }
  return "accepted";
}
std::string refusal_of(const std::string& bytes) {
  return refusal(TemporaryFile(bytes).path());
}

const char* const kSmallJson = R"({"torch": "2.11", "alloc_conf": "", "trace": [["segment_alloc", 4096, 2097152, 0],
  ["alloc", 4096, 700, 0]], "segments": [[4096, 2097152, 1024, 1024, "small", 0, [[1024, "active_allocated"],
  [2096128, "inactive"]]]], "peak_allocated": 1024, "peak_reserved": 2097152})";

}  // namespace

TEST_CASE("snapshot: the pickle form gives trace, segments and settings of the busiest device") {
  const MemorySnapshot s = load_memory_snapshot(data("snapshot_protocol4.pickle"));
  CHECK(s.trace.size() == 17);
  REQUIRE(s.segments.size() == 2);
  CHECK(s.segments[0].small);
  CHECK(s.segments[0].allocated_size == 512);
  CHECK(s.segments[1].stream == 7);
  CHECK(s.alloc_conf.empty());
  CHECK_FALSE(s.peak_reserved);
}

TEST_CASE("snapshot: a hand-made pickle with a deferred free and a returned segment replays exactly") {
  for (const char* name : {"snapshot_protocol2.pickle", "snapshot_protocol4.pickle", "snapshot_protocol5.pickle"}) {
    const ReplayReport r = replay_snapshot(data(name));
    CAPTURE(to_json(r));
    CHECK_FALSE(r.first_difference);
    CHECK(r.requests == 9);
    CHECK(r.segment_events == 4);
    CHECK(r.emulated_peak_reserved == Bytes::mib(34));
    CHECK(r.measured_peak_reserved == Bytes::mib(34));
    CHECK_FALSE(r.measured_from_statistics);
  }
}

TEST_CASE("snapshot: the small JSON form replays exactly") {
  const TemporaryFile file(kSmallJson);
  const ReplayReport r = replay_snapshot(file.path());
  CHECK_FALSE(r.first_difference);
  CHECK(r.emulated_peak_allocated == Bytes(1024));
}

TEST_CASE("snapshot: a final block that differs is reported after the last event") {
  std::string text = kSmallJson;
  text.replace(text.find("[1024, \"active"), 5, "[1536");
  text.replace(text.find("2096128"), 7, "2095616");
  const TemporaryFile file(text);
  const ReplayReport r = replay_snapshot(file.path());
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->event == 2);
  CHECK(r.first_difference->expected.find("size 1536") != std::string::npos);
  CHECK(r.first_difference->got.find("size 1024") != std::string::npos);
}

TEST_CASE("snapshot: damaged files are errors that name the file and the place") {
  CHECK(refusal("/no/such/file").find("cannot open") != std::string::npos);
  CHECK(refusal_of("").find("empty") != std::string::npos);
  CHECK(refusal_of("garbage").find("neither a pickle") != std::string::npos);
  const std::string json = kSmallJson;
  CHECK(refusal_of(json.substr(0, json.size() / 2)).find("JSON form") != std::string::npos);
  CHECK(refusal_of("{\"trace\": 3, \"segments\": []}") != "accepted");
  CHECK(refusal_of("{}").find("trace") != std::string::npos);
  std::string negative = json;
  negative.replace(negative.find("700"), 3, "-70");
  CHECK(refusal_of(negative).find("trace[1]") != std::string::npos);
  std::string gap = json;
  gap.replace(gap.find("2096128"), 7, "2096127");
  CHECK(refusal_of(gap).find("sum to") != std::string::npos);
  std::string state = json;
  state.replace(state.find("inactive"), 8, "sleeping");
  CHECK(refusal_of(state).find("unknown block state 'sleeping'") != std::string::npos);
}

TEST_CASE("snapshot: truncated files of every kind are errors") {
  for (const char* name : {"snapshot_protocol4.pickle", "allocator_default.json.gz"}) {
    const std::string whole = bytes_of(data(name));
    for (const double share : {0.1, 0.5, 0.9, 0.999}) {
      CAPTURE(name);
      CAPTURE(share);
      const auto n = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
      CHECK(refusal_of(whole.substr(0, n)) != "accepted");
    }
  }
  CHECK(refusal(data("hostile_reduce.pickle")).find("only plain data") != std::string::npos);
}
