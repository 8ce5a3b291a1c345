// Several measurement files become one data set, and kernels of the library go before stand-ins.
#include "calibrate/fit/merge_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "calibrate/fit/kernel_rows.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

Measurement row(const std::string& kernel, const std::string& params, double us) {
  Measurement m;
  m.id = {"gemm", kernel, "fwd", "bf16", params, 0, 0};
  m.median_us = us;
  return m;
}

MeasurementTable table(int n, double factor) {
  MeasurementTable t;
  for (int i = 1; i <= n; ++i) t.rows.push_back(row("linear", fmt::format("M={};N=8;K=8", i), 10.0 * i * factor));
  return t;
}

}  // namespace

TEST_CASE("a shape in two files counts twice when they agree") {
  const MergedMeasurements m = merge_measurements({table(10, 1.0), table(10, 1.2)}, {"a.csv", "b.csv"});
  CHECK(m.rows.size() == 20);
  CHECK(m.notes.empty());
}

TEST_CASE("one row in disagreement is left out of both files and named with both times") {
  MeasurementTable other = table(30, 1.0);
  other.rows[4].median_us *= 1.3;
  const MergedMeasurements m = merge_measurements({table(30, 1.0), other}, {"a.csv", "b.csv"});
  CHECK(m.rows.size() == 58);
  REQUIRE(m.notes.size() == 1);
  CHECK(m.notes[0] == "gemm,linear,fwd,bf16,M=5;N=8;K=8 left out: 50 us in a.csv, 65 us in b.csv");
}

TEST_CASE("files of different machines are refused with every row") {
  try {
    merge_measurements({table(30, 1.0), table(30, 1.4)}, {"a.csv", "b.csv"});
    FAIL("not refused");
  } catch (const ConfigError& e) {
    const std::string what = e.what();
    CHECK(what.find("b.csv: gemm,linear,fwd,bf16,M=30;N=8;K=8: measured twice, 300 us in a.csv, 420 us in b.csv") !=
          std::string::npos);
    CHECK(what.find("30 of 30 rows in common differ by more than 25 %") != std::string::npos);
  }
}

TEST_CASE("stand-ins are fitted only where the library was not measured") {
  const auto reason = [](const std::vector<KernelRow>& rows, std::size_t i) { return rows[i].reason; };
  const auto both = kernel_rows({row("linear", "M=64;N=64;K=64", 5), row("cublaslt_linear", "M=64;N=64;K=64", 6)});
  CHECK(reason(both, 0).empty());
  CHECK(reason(both, 1) == "stands in for a library that was measured, too: linear");
  const auto alone = kernel_rows({row("cublaslt_linear", "M=64;N=64;K=64", 6), row("k3_linear", "M=64;N=64;K=64", 9)});
  CHECK(reason(alone, 0).empty());
  CHECK_FALSE(reason(alone, 1).empty());
  CHECK(kernel_rows({row("linear_warm", "M=64;N=64;K=64", 5)})[0].reason == "warm L2");
}
