// Bad measurements are refused, and the message names the row.
#include <doctest/doctest.h>

#include <string>

#include "calibrate/fit/data_check.h"
#include "calibrate/fit/profile_fit.h"
#include "calibrate/harness/measurement_file.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

const char* const kColumns = "section,kernel,pass,dtype,params,flops,bytes,median_us,p20_us,p80_us,reps\n";

std::string refusal(const std::string& lines) {
  const GpuProfile h200 = load_gpu_profile("h200_sxm");
  const auto rows =
      kernel_rows(parse_measurements("# gpu: NVIDIA H200\n" + std::string(kColumns) + lines, "f.csv").rows);
  std::string all;
  for (const Problem& p : check_measurements(rows, h200.limits, "f.csv")) all += to_string(p) + "\n";
  return all;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

const char* const kCopies =
    "mem,copy_d2d,fwd,bf16,n=1048576,0,4194304,5.5,5.2,5.8,60\nmem,copy_d2d,fwd,bf16,n=536870912,0,2147483648,508,507,"
    "509,60\n";

}  // namespace

TEST_CASE("good rows pass") {
  CHECK(refusal(kCopies).empty());
}

TEST_CASE("too few rows are refused with the number that is needed") {
  const std::string r = refusal("gemm,linear,fwd,bf16,M=4096;N=7168;K=7168,420906795008,161480704,570,560,580,20\n");
  CHECK(contains(r, "only 1 rows for the curve gemm_bf16, which needs 20"));
  CHECK(contains(r, "gemm,linear,fwd,bf16,M=4096;N=7168;K=7168"));
}

TEST_CASE("a rate above the peak is refused") {
  CHECK(contains(refusal("gemm,linear,fwd,bf16,M=4096;N=7168;K=7168,420906795008,161480704,300,290,310,20\n"),
                 "1403 TFLOP/s is above the 989 TFLOP/s"));
  CHECK(contains(refusal("mem,copy_d2d,fwd,bf16,n=536870912,0,2147483648,100,99,101,60\n"), "TB/s is above"));
}

TEST_CASE("operations that contradict the shape are refused") {
  CHECK(contains(refusal("gemm,linear,fwd,bf16,M=4096;N=7168;K=7168,210453397504,161480704,570,560,580,20\n"),
                 "the shape gives 4.20907e+11"));
}

TEST_CASE("quantiles out of order, zero times and contradicting repeats are refused") {
  CHECK(contains(refusal("mem,add,fwd,bf16,n=4194304,4194304,25165824,11,12,13,60\n"), "quantiles out of order"));
  CHECK(contains(refusal("mem,add,fwd,bf16,n=4194304,4194304,25165824,0,0,0,60\n"), "must be positive"));
  CHECK(contains(refusal("mem,add,fwd,bf16,n=4194304,4194304,25165824,11,10,12,60\n"
                         "mem,add,fwd,bf16,n=4194304,4194304,25165824,16,15,17,60\n"),
                 "measured twice, 11 us and 16 us"));
}

TEST_CASE("all problems are reported at once and nothing is fitted") {
  const GpuProfile h200 = load_gpu_profile("h200_sxm");
  const auto rows = kernel_rows(parse_measurements(std::string(kColumns) +
                                                       "mem,add,fwd,bf16,n=4194304,0,25165824,0,0,0,60\n"
                                                       "gemm,linear,fwd,bf16,M=64;N=64;K=64,524288,24576,6,5,7,60\n",
                                                   "f.csv")
                                    .rows);
  try {
    fit_profile(h200, rows, "f.csv");
    FAIL("no error");
  } catch (const ConfigError& e) {
    CHECK(e.problems().size() == 3);  // zero time, too few add rows, too few gemm rows
  }
}

TEST_CASE("a file of collectives alone cannot be fitted") {
  CHECK(contains(refusal("nccl,all_reduce,fwd,bf16,ranks=2;bytes=1024,0,1024,9,8,10,10\n"),
                 "no row that a kernel curve"));
}

TEST_CASE("the base profile follows from the GPU line") {
  CHECK(base_profile_for({"gpu: NVIDIA H200 (SXM, 141 GB), 132 SMs"}) == "h200_sxm");
  CHECK(base_profile_for({"gpu: NVIDIA H20"}) == "h20");
  CHECK(base_profile_for({"gpu: NVIDIA GB200"}) == "gb200");
  CHECK(base_profile_for({"gpu: NVIDIA A100-SXM4-80GB"}) == "a100_sxm_80");
  CHECK(base_profile_for({"software: H200"}).empty());
}
