// The measurement files in the repository: they parse, say where they come from, hold no row twice and nothing
// impossible.
#include "calibrate/harness/measurement_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

using namespace k3sim;

TEST_CASE("shipped measurements: every file parses, names its GPU and date, and has each key once") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(K3SIM_SOURCE_DIR) + "/calibrate/measurements")) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    CAPTURE(entry.path().string());
    const auto table = read_measurements(entry.path().string());
    REQUIRE_FALSE(table.header.empty());
    CHECK(table.header[0].rfind("gpu: NVIDIA", 0) == 0);
    std::set<std::string> keys;
    for (const auto& row : table.rows) {
      CAPTURE(row.id.key());
      CHECK(keys.insert(row.id.key()).second);
      CHECK(row.median_us > 0);
      CHECK(row.p20_us <= row.median_us);
      CHECK(row.median_us <= row.p80_us);
      CHECK(row.reps >= 4);
      // No faster than the dense peak of the H200 (BF16 989, FP8 1979 TFLOP/s).
      const double peak = row.id.dtype == "fp8" ? 1.979e9 : 0.9895e9;  // operations per microsecond
      CHECK(row.id.flops / row.median_us <= peak);
    }
  }
  CHECK(files >= 5);
}
