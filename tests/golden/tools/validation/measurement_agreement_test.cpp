// What calibrate measured on H200s agrees with the reference measurements of another H200: median difference of the
// same kernels and shapes at most 5 %. FP8 products do not (calibrate/README.md says why) and are held where they are.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "calibrate/fit/curve_fit.h"
#include "calibrate/harness/measurement_file.h"
#include "tools/validation/measurement_agreement.h"

using namespace k3sim;

namespace {

std::vector<AgreementRow> against_reference(const std::string& own) {
  return compare_measurements(read_measurements(K3SIM_SOURCE_DIR "/calibrate/measurements/" + own).rows,
                              read_measurements(K3SIM_TEST_DATA "/measurements/h200_kernels.csv").rows);
}

FamilyErrors errors(const std::vector<AgreementRow>& rows, const std::string& prefix) {
  std::vector<double> ratios;
  for (const AgreementRow& r : rows)
    if (!r.latency && r.group.rfind(prefix, 0) == 0) ratios.push_back(r.us / r.other_us);
  return summarize_errors(ratios);
}

}  // namespace

TEST_CASE("real libraries through their adapters agree with the reference within 5 %") {
  const auto rows = against_reference("h200_libraries.csv");
  CHECK(errors(rows, "kda,flash_kda").n == 24);
  CHECK(errors(rows, "kda,flash_kda").worst <= 0.05);
  CHECK(errors(rows, "gemm,linear").n >= 46);
  for (const char* kernel : {"gemm,linear", "grouped,grouped_mm", "attn,sdpa_cudnn"}) {
    CAPTURE(kernel);
    CHECK(errors(rows, kernel).median <= 0.05);
    CHECK(std::abs(errors(rows, kernel).bias) <= 0.05);
  }
  const auto triton = against_reference("h200_fla.csv");
  CHECK(errors(triton, "kda,fla_chunk_kda").n == 4);
  CHECK(errors(triton, "kda,fla_chunk_kda").worst <= 0.05);
}

TEST_CASE("the compiled program agrees with the reference within 5 % on one GPU") {
  const auto rows = against_reference("h200_kernels.csv");
  CHECK(errors(rows, "gemm,linear").n == 136);
  for (const char* kernel : {"gemm,linear", "mem,copy_d2d", "copy,"}) {
    CAPTURE(kernel);
    CHECK(errors(rows, kernel).median <= 0.05);
  }
}

TEST_CASE("collectives of two GPUs agree with the reference within 5 %") {
  for (const char* file : {"h200_two_gpus.csv", "h200_x2_libraries.csv"}) {
    CAPTURE(file);
    const auto rows = against_reference(file);
    for (const char* kernel : {"nccl,all_reduce", "nccl,all_gather", "nccl,reduce_scatter", "nccl,all_to_all"}) {
      CAPTURE(kernel);
      CHECK(errors(rows, kernel).n >= 3);
      CHECK(errors(rows, kernel).median <= 0.05);
    }
  }
}
