// The measurement CSV: format, refusals, resuming.
#include "calibrate/harness/measurement_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"

using namespace k3sim;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

struct TempFile {
  std::string path = (std::filesystem::temp_directory_path() / "k3sim_measurement_file_test.csv").string();
  TempFile() { clean(); }
  ~TempFile() { clean(); }
  void clean() const {
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".partial");
  }
};

Measurement row(const std::string& kernel, double us) {
  return {{"gemm", kernel, "fwd", "bf16", "M=8;N=16;K=24", 6144, 1408}, us, us - 1, us + 1, 20};
}

const std::vector<std::string> kHeader = {"gpu: test", "method: none"};

}  // namespace

TEST_CASE("measurement csv: a row is written exactly as the shipped files write it") {
  const Measurement m{{"gemm", "linear", "fwd", "bf16", "M=72;N=136;K=264", 5170176, 129408}, 5.92, 5.12, 6.144, 60};
  CHECK(to_csv_line(m) == "gemm,linear,fwd,bf16,M=72;N=136;K=264,5170176,129408,5.920,5.120,6.144,60");
}

TEST_CASE("measurement csv: what is written is read back unchanged") {
  const TempFile file;
  MeasurementWriter writer(file.path, kHeader);
  writer.add(row("a", 10));
  writer.add(row("b", 20));
  writer.finish();
  const auto table = read_measurements(file.path);
  CHECK(table.header == kHeader);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1].id.key() == "gemm,b,fwd,bf16,M=8;N=16;K=24");
  CHECK(table.rows[1].median_us == 20);
  CHECK(table.rows[0].reps == 20);
}

TEST_CASE("measurement csv: an interrupted run leaves only the partial file, and the next run resumes from it") {
  const TempFile file;
  {
    MeasurementWriter writer(file.path, kHeader);
    writer.add(row("a", 10));
  }
  CHECK_FALSE(std::filesystem::exists(file.path));
  MeasurementWriter again(file.path, kHeader);
  CHECK(again.resumed_rows() == 1);
  CHECK(again.done(row("a", 99).id));
  CHECK_FALSE(again.done(row("b", 99).id));
  again.add(row("a", 99));  // a second measurement of the same key never replaces the first
  again.add(row("b", 20));
  again.finish();
  const auto table = read_measurements(file.path);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].median_us == 10);
  CHECK_FALSE(std::filesystem::exists(file.path + ".partial"));
}

TEST_CASE("measurement csv: rows of another machine are not mixed in") {
  const TempFile file;
  {
    MeasurementWriter writer(file.path, kHeader);
    writer.finish();
  }
  CHECK_THROWS_AS(MeasurementWriter(file.path, {"gpu: other"}), ConfigError);
}

TEST_CASE("measurement csv: every bad line is reported with its number") {
  const std::string text = std::string("# gpu: x\n") + kMeasurementColumns +
                           "\ngemm,a,fwd,bf16,,1,2,abc,1,1,5\ngemm,a,fwd\ngemm,a,fwd,bf16,,1,2,-3,1,1,5\n";
  try {
    parse_measurements(text, "f.csv");
    FAIL("must be refused");
  } catch (const ConfigError& e) {
    REQUIRE(e.problems().size() == 3);
    CHECK(e.problems()[0].place.line == 3);
    CHECK(e.problems()[1].what.find("3 fields") != std::string::npos);
    CHECK(e.problems()[2].place.line == 5);
  }
  CHECK_THROWS_AS(parse_measurements("# only a comment\n", "f.csv"), ConfigError);
}

TEST_CASE("measurement csv: a row without percentiles takes the median for them") {
  const auto table = parse_measurements(
      std::string(kMeasurementColumns) + "\noverlap,gemm_during_h2d_d2h,fwd,bf16,M=8192,100,0,14348.384,,,10\n", "f");
  CHECK(table.rows.at(0).p20_us == 14348.384);
  CHECK(table.rows.at(0).p80_us == 14348.384);
}

TEST_CASE("measurement csv: notes are header lines and appear once") {
  const TempFile file;
  MeasurementWriter writer(file.path, kHeader);
  writer.add_note("skipped nccl: needs 2 GPUs, 1 in use");
  writer.add_note("skipped nccl: needs 2 GPUs, 1 in use");
  writer.finish();
  const std::string text = slurp(file.path);
  CHECK(text.find("# skipped nccl") == text.rfind("# skipped nccl"));
  CHECK(read_measurements(file.path).header.size() == 3);
}
