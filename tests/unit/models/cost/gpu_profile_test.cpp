// GPU profiles: every shipped file loads, wrong files say what is wrong, borrowing follows its stated ratios.
#include "models/cost/gpu_profile.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "models/cost/curve.h"
#include "sim/base/error.h"

using namespace k3sim;

namespace {

std::string write(const std::string& name, const std::string& text) {
  std::ofstream(name) << text;
  return name;
}

const char* const kHead =
    "name: test_gpu\ncollectives: h200_sxm\nprice_per_gpu_hour: 1\n"
    "datasheet: {sm_count: 66, bf16_dense: 500 TFLOP/s, hbm: 2.4 TB/s, usable_memory: 80 GiB}\n"
    "host_link: {single: 50 GB/s, both: 40 GB/s, all_busy: 20 GB/s}\n";

std::string problems_of(const std::string& text) {
  const std::string file = write("bad_gpu.yaml", text);
  try {
    load_gpu_profile(file);
  } catch (const ConfigError& e) {
    std::string all;
    for (const Problem& p : e.problems()) all += to_string(p) + "\n";
    return all;
  }
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every shipped GPU profile loads, names itself and can price a kernel of each family") {
  const std::vector<std::string> names = known_gpu_profiles();
  CHECK(names.size() >= 12);
  for (const std::string& name : names) {
    CAPTURE(name);
    const GpuProfile p = load_gpu_profile(name);
    CHECK(p.limits.name == name);
    CHECK(p.limits.sm_count > 70);
    CHECK(p.limits.fp8_dense.value() >= p.limits.bf16_dense.value());
    CHECK(p.host.all_busy.value() <= p.host.both.value());
    CHECK(p.host.both.value() <= p.host.single.value());
    const auto model = make_cost_model(p);
    const Kernel gemm = gemm_kernel("g", Pass::forward, Dtype::bf16, 8192, 8192, 8192);
    const double rate = gemm.flops.value() / model->time(gemm).time.seconds();
    CHECK(rate < p.limits.bf16_dense.value());
    CHECK(rate > 0.5 * p.limits.bf16_dense.value());
    const Kernel copy = memory_kernel("c", Pass::forward, MemoryClass::copy, Bytes(2'000'000'000));
    const double bandwidth = copy.bytes.as_double() / model->time(copy).time.seconds();
    CHECK(bandwidth < p.limits.hbm.value());
    CHECK(bandwidth > 0.6 * p.limits.hbm.value());
  }
}

TEST_CASE("an unknown GPU is answered with the nearest name") {
  try {
    load_gpu_profile("h200_sxn");
    FAIL("no error");
  } catch (const ConfigError& e) {
    CHECK(contains(to_string(e.problems().front()), "h200_sxm"));
  }
}

TEST_CASE("wrong profile files name the key, the line and the remedy") {
  const std::string curve =
      "curves:\n  copy: {form: linear, provenance: fitted, coefficients: {fixed_us: 5, bw_hbm: 4}}\n";
  CHECK(problems_of(std::string(kHead) + curve).empty());
  CHECK(contains(problems_of("name: x\n"), "datasheet"));
  CHECK(contains(problems_of(std::string(kHead) + "kda: triton\n"), "must be fla or flash_kda"));
  CHECK(contains(problems_of(std::string(kHead) + "slowdwon: {}\n"), "slowdwon"));
  const std::string negative = problems_of(
      std::string(kHead) + "curves:\n  copy: {form: linear, provenance: fitted, coefficients: {fixed_us: -5}}\n");
  CHECK(contains(negative, "negative"));
  CHECK(contains(negative, "bad_gpu.yaml:7"));
  CHECK(contains(problems_of(std::string(kHead) + "curves:\n  copy: {form: linear, provenance: guess}\n"), "guess"));
}

TEST_CASE("a curve of unknown form or without a coefficient is refused when the model is made") {
  GpuProfile p = load_gpu_profile(write("good_gpu.yaml", kHead));
  p.curves["copy"].form = "lineal";
  CHECK_THROWS_AS(make_cost_model(p), ConfigError);
  p.curves["copy"].form = "linear";
  CHECK_THROWS_AS(make_cost_model(p), ConfigError);
  p.curves["copy"].coefficients["fixed_us"] = 3;
  CHECK_NOTHROW(make_cost_model(p));
}

TEST_CASE("borrowed curves follow the stated ratios and say where they come from") {
  const GpuProfile base = load_gpu_profile("h200_sxm");
  const GpuProfile p = load_gpu_profile(write(
      "borrowing_gpu.yaml", std::string(kHead) + "borrow: {from: h200_sxm, compute: 0.5, memory: 0.25, clock: 0.8}\n"));
  const CostCurve& from = base.curves.at("gemm_bf16");
  const CostCurve& to = p.curves.at("gemm_bf16");
  CHECK(to.at("rate_peak") == doctest::Approx(0.5 * from.at("rate_peak")));
  CHECK(to.at("bw_hbm") == doctest::Approx(0.25 * from.at("bw_hbm")));
  CHECK(to.at("sms") == 66);
  CHECK(to.at("fixed_us") == from.at("fixed_us"));
  CHECK(to.provenance == Provenance::borrowed);
  CHECK(to.p95_ratio > from.p95_ratio);
  CHECK(contains(to.note, "h200_sxm"));
  CHECK(p.curves.at("kda_flash_forward").at("sm_chunk_us") ==
        doctest::Approx(base.curves.at("kda_flash_forward").at("sm_chunk_us") / 0.8));
  CHECK(p.curves.count("copy_h2d") == 0);
}

TEST_CASE("another name gives the same GPU") {
  const GpuProfile a = load_gpu_profile("a100_sxm"), b = load_gpu_profile("a100_sxm_80");
  CHECK(a.limits.name == "a100_sxm");
  CHECK(a.limits.hbm == b.limits.hbm);
  CHECK(a.curves.at("gemm_bf16").coefficients == b.curves.at("gemm_bf16").coefficients);
}

TEST_CASE("the choice of the KDA kernel is the profile's, and an option's over it") {
  GpuProfile p = load_gpu_profile("h200_sxm");
  const Kernel kda = kda_kernel("kda", Pass::forward, 1, 8192, 96, 128);
  const double fla = make_cost_model(p)->time(kda).time.milliseconds();
  const double flash = make_cost_model(p, {.kda = "flash_kda", .attention = {}})->time(kda).time.milliseconds();
  CHECK(fla == doctest::Approx(2.62).epsilon(0.03));     // k3-facts 4.4: 3.28 ns per token and head
  CHECK(flash == doctest::Approx(1.454).epsilon(0.03));  // k3-facts 4.4, measured
  p.kda = "flash_kda";
  CHECK(make_cost_model(p)->time(kda).time.milliseconds() == flash);
}

TEST_CASE("provenance tells measured range, edge, substitute and datasheet apart") {
  const auto model = make_cost_model(load_gpu_profile("h200_sxm"));
  const auto gemm = [&](std::int64_t m, Dtype d) {
    return model->time(gemm_kernel("g", Pass::forward, d, m, 7168, 7168)).provenance;
  };
  CHECK(gemm(4096, Dtype::bf16) == Provenance::fitted);
  CHECK(gemm(4'000'000, Dtype::bf16) == Provenance::boundary);
  CHECK(gemm(4096, Dtype::fp8_block) == Provenance::borrowed);
  CHECK(gemm(4096, Dtype::nvfp4) == Provenance::datasheet);
  CHECK(model->time(memory_kernel("s", Pass::forward, MemoryClass::softmax, Bytes(100'000'000))).provenance ==
        Provenance::borrowed);
  const auto b200 = make_cost_model(load_gpu_profile("b200_sxm"));
  CHECK(b200->time(gemm_kernel("g", Pass::forward, Dtype::bf16, 4096, 4096, 4096)).provenance == Provenance::datasheet);
}

TEST_CASE("in a stream that never rests, short matrix kernels lose what the power limit takes from long ones") {
  const GpuProfile p = load_gpu_profile("h200_sxm");
  const auto rested = make_cost_model(p), busy = make_cost_model(p, {.sustained_burst = Time::us(900)});
  const Kernel small = gemm_kernel("gemm", Pass::forward, Dtype::bf16, 4096, 4096, 4096);
  const Kernel large = gemm_kernel("gemm", Pass::forward, Dtype::bf16, 16384, 16384, 7168);
  const Kernel stream = memory_kernel("add", Pass::forward, MemoryClass::add, Bytes(1'000'000'000));
  // Own H200, back to back: 205.3 us; rested: 179 us by the curve.
  const double ratio = busy->time(small).time / rested->time(small).time;
  CHECK(ratio > 1.05);
  CHECK(ratio < 205.3 / 179.2);
  CHECK(busy->time(large).time == rested->time(large).time);
  CHECK(busy->time(stream).time == rested->time(stream).time);
}
