// The cost of adding a weight gradient to an FP32 buffer against products timed with and without it on an H200.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "calibrate/harness/measurement_file.h"
#include "models/cost/gradient_accumulation.h"

using namespace k3sim;

namespace {

std::map<char, std::int64_t> shape(const std::string& params) {
  std::map<char, std::int64_t> out;
  std::istringstream in(params);
  for (std::string part; std::getline(in, part, ';');) out[part.at(0)] = std::stoll(part.substr(2));
  return out;
}

Kernel weight_gradient(const std::string& params) {
  const auto p = shape(params);
  Kernel k = p.count('G') > 0 ? grouped_gemm_kernel("w", Pass::weight_grad, Dtype::bf16, p.at('G'),
                                                    p.at('G') * p.at('M'), p.at('N'), p.at('K'))
                              : gemm_kernel("w", Pass::weight_grad, Dtype::bf16, p.at('M'), p.at('N'), p.at('K'));
  k.accumulated = 4;
  return k;
}

const RooflinePeaks kH200{FlopRate(989.5e12), FlopRate(1979e12), Bandwidth(4.8e12)};

}  // namespace

TEST_CASE("accumulation: a product with it takes what it takes without, plus the formula, within 13 %") {
  std::map<std::string, double> written;
  const auto rows = read_measurements(K3SIM_SOURCE_DIR "/calibrate/measurements/h200_accumulate.csv").rows;
  for (const Measurement& r : rows)
    if (r.id.kernel.find("_write") != std::string::npos) written[r.id.params] = r.median_us;
  std::vector<double> errors;
  for (const Measurement& r : rows) {
    if (r.id.kernel.find("_add") == std::string::npos) continue;
    CAPTURE(r.id.params);
    const double predicted = written.at(r.id.params) + accumulation_us(weight_gradient(r.id.params), kH200);
    errors.push_back(std::abs(predicted / r.median_us - 1));
    CHECK(errors.back() <= 0.13);
  }
  REQUIRE(errors.size() == 59);
  std::nth_element(errors.begin(), errors.begin() + 29, errors.end());
  CHECK(errors[29] <= 0.025);
}

TEST_CASE("accumulation: nothing without a buffer, a third of the traffic in half precision") {
  Kernel k = gemm_kernel("w", Pass::weight_grad, Dtype::bf16, 4096, 7168, 7168);
  CHECK(accumulation_us(k, kH200) == 0);
  k.accumulated = 4;
  const double full = accumulation_us(k, kH200);
  k.accumulated = 2;  // reads 2 bytes more than a product that only writes, against 2 + 4 more
  CHECK(accumulation_us(k, kH200) == doctest::Approx(full / 3));
  k.pass = Pass::input_grad;
  CHECK(accumulation_us(k, kH200) == 0);
}
