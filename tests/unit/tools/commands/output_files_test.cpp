// Files appear complete or not at all.
#include "tools/commands/output_files.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/base/error.h"

using namespace k3sim;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("k3sim-test-" + std::to_string(getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("output: nothing is visible before commit, everything after") {
  const Scratch scratch;
  OutputFolder folder((scratch.path / "out").string());
  folder.add("summary.json", "{}");
  folder.add("ranks.csv", "rank\n0\n");
  CHECK_FALSE(fs::exists(scratch.path / "out/summary.json"));
  folder.commit();
  CHECK(content(scratch.path / "out/summary.json") == "{}");
  CHECK(content(scratch.path / "out/ranks.csv") == "rank\n0\n");
  CHECK(files_in(scratch.path / "out") == 2);
}

TEST_CASE("output: without commit older results stay and no half file is left") {
  const Scratch scratch;
  write_file_atomically((scratch.path / "summary.json").string(), "old");
  {
    OutputFolder folder(scratch.path.string());
    folder.add("summary.json", "new");
    folder.add("other.json", "new");
  }
  CHECK(content(scratch.path / "summary.json") == "old");
  CHECK(files_in(scratch.path) == 1);
}

TEST_CASE("output: a place that cannot be written is the user's error and names the place") {
  const Scratch scratch;
  write_file_atomically((scratch.path / "file").string(), "x");
  CHECK_THROWS_AS(OutputFolder((scratch.path / "file").string()), ConfigError);
  CHECK_THROWS_AS(write_file_atomically((scratch.path / "missing/f").string(), "x"), ConfigError);
  CHECK(files_in(scratch.path) == 1);
}
