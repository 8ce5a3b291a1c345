// Reading published tables and staying within the promised errors on rows of them.
#include "tools/validation/collective_validation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/error.h"

using namespace k3sim;

namespace {
const std::string kData = std::string(K3SIM_TEST_DATA) + "/collectives/";
const CollectiveRow& find(const std::vector<CollectiveRow>& rows, const std::string& id) {
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const CollectiveRow& r) { return r.id == id; });
  REQUIRE(it != rows.end());
  return *it;
}
}  // namespace

TEST_CASE("collective_validation: groups, sizes and operations are read from columns, ids and texts") {
  const auto rows = validate_collective_tables(kData + "kernels_excerpt.yaml");
  const CollectiveRow& azure = find(rows, "nccl-allreduce-1n8-h100-azure/0");
  CHECK(azure.ranks == 8);
  CHECK(azure.bytes == 32 << 20);  // "33M" is a rounded label
  CHECK(azure.measured == doctest::Approx(33554432 * 1.75 / 295.53e3));
  const CollectiveRow& wide = find(rows, "nccl-allreduce-multinode-h100-nvlstree/2");
  CHECK(wide.ranks == 8192);
  CHECK(wide.nodes == 1024);
  const CollectiveRow& user = find(rows, "nccl-32n256-h100-user/0");
  CHECK(user.ranks == 256);
  CHECK(user.nodes == 32);
  CHECK(user.bytes == std::int64_t{2} << 30);
  CHECK(find(rows, "nccl-1n-h100-aic/0").kind == "all_to_all");
}

TEST_CASE("collective_validation: rows that the curves were read from are marked, others are not") {
  const auto rows = validate_collective_tables(kData + "kernels_excerpt.yaml");
  CHECK(find(rows, "nccl-1n-h100-aic/0").calibration);
  CHECK(!find(rows, "nccl-allreduce-1n8-h100-azure/0").calibration);
}

TEST_CASE("collective_validation: what cannot be interpreted is skipped with a reason") {
  const auto rows = validate_collective_tables(kData + "kernels_excerpt.yaml");
  const CollectiveRow& r = find(rows, "moonep-h20/0");
  CHECK(!r.predicted_row);
  CHECK(!r.reason.empty());
  CHECK(std::none_of(rows.begin(), rows.end(), [](const CollectiveRow& x) { return x.table == "gemm-something"; }));
}

TEST_CASE("collective_validation: published all_reduce up to 8,192 GPUs and DeepEP on 64 within 15 %") {
  for (const CollectiveRow& r : validate_collective_tables(kData + "kernels_excerpt.yaml")) {
    if (!r.predicted_row) continue;
    INFO(r.id, " ", r.kind, ": measured ", r.measured, " us, predicted ", r.predicted, " us");
    CHECK(std::abs(r.error_pct) <= (r.nodes > 1 || r.family == "expert exchange" ? 15 : 10));
  }
}

TEST_CASE("collective_validation: measured rows of two GPUs, eager messages included") {
  const auto rows = validate_nccl_measurements(kData + "nccl_excerpt.csv");
  REQUIRE(rows.size() == 3);
  CHECK(std::abs(rows[0].error_pct) < 5);
  CHECK(rows[1].kind == "sendrecv_bidir");
  CHECK(std::abs(rows[1].error_pct) < 10);
  CHECK(rows[2].reason == "not a collective");
}

TEST_CASE("collective_validation: summaries split by family and keep calibration rows apart") {
  const auto rows = validate_collective_tables(kData + "kernels_excerpt.yaml");
  const auto summaries = summarize(rows);
  const auto& eight = summaries.front();
  CHECK(eight.label == "8 GPUs, 1 MiB and more");
  CHECK(eight.rows == 3);
  CHECK(eight.independent == 2);
  CHECK(summaries.back().label == "all");
  CHECK(to_text(summaries).find("expert exchange") != std::string::npos);
}

TEST_CASE("collective_validation: a missing file is a ConfigError") {
  CHECK_THROWS_AS(validate_collective_tables(kData + "none.yaml"), ConfigError);
  CHECK_THROWS_AS(validate_nccl_measurements(kData + "none.csv"), ConfigError);
}
