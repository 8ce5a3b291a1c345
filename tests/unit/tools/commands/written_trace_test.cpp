// The trace files as `run --out` writes them, read back by strict readers: slices of a track never overlap, flows join
// two slices, counters end where they began.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/trace/gzip.h"
#include "tests/unit/sim/trace/perfetto_reader.h"
#include "tools/commands/command.h"
#include "tools/commands/program.h"

namespace k3sim {

namespace fs = std::filesystem;

namespace {

std::string unpacked(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return gunzip(std::string(std::istreambuf_iterator<char>(in), {}));
}

void run_scenario(const fs::path& folder) {
  std::ostringstream out, err;
  CommandContext context{.out = out, .err = err};
  CHECK(run_program({"run", K3SIM_SOURCE_DIR "/scenarios/k3_2048_h800/scenario.yaml", "--no-sensitivity", "--out",
                     folder.string()},
                    context) == 0);
}

void check_perfetto(const std::string& bytes) {
  const PerfettoReader trace(bytes);  // throws at overlaps, missing names, ends without a begin, odd flows
  CHECK(trace.slices.size() > 500'000);
  std::set<std::uint64_t> processes;
  for (const auto& [track, parent] : trace.parents)
    if (parent != 0) processes.insert(parent);
  CHECK(processes.size() == 16);
  CHECK(trace.counters.size() >= 3 * 16);  // memory, NIC and NVLink load of every rank
  for (const auto& [track, values] : trace.counters) {
    CAPTURE(trace.tracks.at(track));
    CHECK(values.size() > 2);
    CHECK(values.front() == doctest::Approx(values.back()));
  }
}

// Chrome's form: X events of one thread follow each other.
void check_json(const std::string& text) {
  const auto trace = nlohmann::json::parse(text);
  std::map<std::pair<int, int>, double> busy_until;
  std::size_t slices = 0;
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    ++slices;
    double& until = busy_until[{e.at("pid").get<int>(), e.at("tid").get<int>()}];
    REQUIRE(e.at("ts").get<double>() >= until - 1e-6);
    until = e.at("ts").get<double>() + e.at("dur").get<double>();
  }
  CHECK(slices > 1000);
  CHECK(slices <= 500'000);
}

}  // namespace

TEST_CASE("run --out: the Perfetto and the JSON trace are read back by strict readers") {
  const fs::path folder = fs::temp_directory_path() / ("k3sim-traces-" + std::to_string(getpid()));
  run_scenario(folder);
  check_perfetto(unpacked(folder / "trace.perfetto.gz"));
  check_json(unpacked(folder / "trace.json.gz"));
  fs::remove_all(folder);
}

}  // namespace k3sim
