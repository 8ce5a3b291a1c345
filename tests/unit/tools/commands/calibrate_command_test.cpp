// `k3sim calibrate`: which programs it starts, with which arguments, and what it says when they are missing.
#include "tools/commands/calibrate_command.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

using namespace k3sim;

namespace {

namespace fs = std::filesystem;

// A stand-in for the CUDA program: writes its arguments down and exits with a chosen code.
struct StandIn {
  fs::path folder = fs::temp_directory_path() / "k3sim_calibrate_test";
  fs::path program = folder / "k3sim_calibrate", log = folder / "log";
  explicit StandIn(int code) {
    fs::create_directories(folder);
    std::ofstream(program) << "#!/bin/sh\necho \"$@\" > " << log.string() << "\nexit " << code << "\n";
    fs::permissions(program, fs::perms::owner_all);
  }
  ~StandIn() { fs::remove_all(folder); }
  std::string arguments() const {
    std::ifstream in(log);
    std::string line;
    std::getline(in, line);
    return line;
  }
};

}  // namespace

TEST_CASE("calibrate: options reach the CUDA program and its exit code comes back") {
  const StandIn fake(1);
  CHECK(run_calibrate({.out = "m.csv", .gpus = 2, .quick = true, .only = "gemm_bf16,kda", .program = fake.program}) ==
        1);
  CHECK(fake.arguments() == "--gpus 2 --quick --only gemm_bf16,kda --out m.csv");
  CHECK(run_calibrate({.check = true, .program = fake.program}) == 1);
  CHECK(fake.arguments() == "--check");
}

TEST_CASE("calibrate: the libraries are timed into a file of their own") {
  CHECK(libraries_file("a/b.csv") == "a/b_libraries.csv");
  const auto lines = calibrate_command_lines({.out = "m.csv", .gpus = 2, .libraries = true}, "/x/k3sim_calibrate");
  REQUIRE(lines.size() == 2);
  CHECK(std::find(lines[1].begin(), lines[1].end(), "m_libraries.csv") != lines[1].end());
  CHECK(std::find(lines[1].begin(), lines[1].end(), "calibrate.adapters") != lines[1].end());
}

TEST_CASE("calibrate: the program is found beside k3sim first, then on PATH") {
  const StandIn fake(0);
  CHECK(find_calibrate_program({}, fake.folder.string(), "") == fake.program.string());
  CHECK(find_calibrate_program({}, "/nowhere", "/also/nowhere:" + fake.folder.string()) == fake.program.string());
  CHECK(find_calibrate_program({}, "/nowhere", "/also/nowhere").empty());
  CHECK(find_calibrate_program({.program = "/not/there"}, fake.folder.string(), "").empty());
}

TEST_CASE("calibrate: a machine without the CUDA program gets a sentence, not a crash") {
  CHECK_THROWS_WITH_AS(calibrate_command_lines({.out = "m.csv"}, ""), doctest::Contains("nvcc"), ConfigError);
}

TEST_CASE("calibrate: contradictory or missing options are wrong usage") {
  CHECK_THROWS_AS(run_calibrate({}), UsageError);
  CHECK_THROWS_AS(run_calibrate({.out = "m.csv", .gpus = -1}), UsageError);
  CHECK_THROWS_AS(run_calibrate({.out = "m.csv", .check = true, .libraries = true}), UsageError);
}
