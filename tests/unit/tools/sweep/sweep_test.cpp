// The same bytes however the work is split; nothing lost when a run is cut off; other people's rows never taken.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"
#include "tools/sweep/journal.h"
#include "tools/sweep/sweep.h"

using namespace k3sim;

namespace {

namespace fs = std::filesystem;

struct Scratch {
  std::string path = (fs::temp_directory_path() / ("k3sim_sweep_" + std::to_string(::getpid()))).string();
  Scratch() { fs::remove_all(path); }
  ~Scratch() { fs::remove_all(path); }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

const SearchSpace& space() {
  static const SearchSpace s = SearchSpace::load(K3SIM_TEST_DATA "/planner/small_space.yaml");
  return s;
}

EvaluateOptions coarse() {
  EvaluateOptions o;
  o.detail = StepGraphOptions::Detail::step;
  o.allow_assumed = true;
  return o;
}

}  // namespace

TEST_CASE("sweep: threads and shards give the same bytes") {
  const Scratch scratch;
  RowMaker rows(space(), coarse());
  SweepRequest request{.folder = scratch.path + "/a", .threads = 2};
  const SweepOutcome whole = run_sweep(rows, request, {});
  CHECK(whole.total == space().size());
  for (int shard = 0; shard < 5; ++shard) {
    SweepRequest part{.folder = scratch.path + "/b", .shard = shard, .shards = 5, .sharded = true};
    run_sweep(rows, part, {});
  }
  const SweepOutcome merged = merge_shards(rows, scratch.path + "/b");
  CHECK(text_of(whole.file) == text_of(merged.file));
  CHECK(text_of(whole.file).find("rejected,gpus") != std::string::npos);
  CHECK(text_of(whole.file).find("predicted,ok") != std::string::npos);
  CHECK(!fs::exists(scratch.path + "/a/journal-sweep.csv"));
}

TEST_CASE("sweep: a run that is cut off in the middle of a row resumes with what is missing") {
  const Scratch scratch;
  RowMaker rows(space(), coarse());
  const SweepOutcome whole = run_sweep(rows, {.folder = scratch.path + "/whole"}, {});
  const std::string folder = scratch.path + "/cut";
  fs::create_directories(folder);
  {
    Journal journal(folder + "/journal-rank-0-of-2.csv", rows.digest(), true);
    for (std::int64_t i = 0; i < 7; ++i) journal.add(i, rows.row(i));
  }
  {
    Journal journal(folder + "/journal-sweep.csv", rows.digest(), true);
    for (std::int64_t i = 20; i < 25; ++i) journal.add(i, rows.row(i));
  }
  fs::resize_file(folder + "/journal-sweep.csv", fs::file_size(folder + "/journal-sweep.csv") - 9);
  const SweepOutcome resumed = run_sweep(rows, {.folder = folder, .resume = true}, {});
  CHECK(resumed.evaluated == space().size() - 7 - 4);
  CHECK(text_of(resumed.file) == text_of(whole.file));
}

TEST_CASE("sweep: rows of another space or of other options are not taken") {
  const Scratch scratch;
  RowMaker rows(space(), coarse());
  EvaluateOptions fine = coarse();
  fine.detail = StepGraphOptions::Detail::kernel;
  RowMaker other(space(), fine);
  CHECK(rows.digest() != other.digest());
  fs::create_directories(scratch.path);
  { Journal(scratch.path + "/journal-sweep.csv", other.digest(), true).add(0, "x\r\n"); }
  CHECK(read_journals(scratch.path, rows.digest()).empty());
  CHECK(read_journals(scratch.path, other.digest()).size() == 1);
}

TEST_CASE("sweep: merging names the shard that is missing or foreign") {
  const Scratch scratch;
  RowMaker rows(space(), coarse());
  run_sweep(rows, {.folder = scratch.path, .shard = 1, .shards = 2, .sharded = true}, {});
  CHECK_THROWS_WITH_AS(merge_shards(rows, scratch.path), doctest::Contains("shard 0 of 2 is missing"), ConfigError);
  run_sweep(rows, {.folder = scratch.path, .shard = 0, .shards = 2, .sharded = true}, {});
  const SearchSpace other =
      SearchSpace::load(K3SIM_TEST_DATA "/planner/small_space.yaml", {"batch.micro_batch=[1, 4]"});
  RowMaker others(other, coarse());
  CHECK_THROWS_WITH_AS(merge_shards(others, scratch.path), doctest::Contains("another space"), ConfigError);
}
