// The fit to the shipped H200 measurements: errors of shape families that were left out, and the shipped profile.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "calibrate/fit/merge_files.h"
#include "calibrate/fit/profile_fit.h"
#include "calibrate/harness/measurement_file.h"

using namespace k3sim;

namespace {

struct Fitted {
  MeasurementTable table = read_measurements(K3SIM_TEST_DATA "/measurements/h200_kernels.csv");
  std::vector<KernelRow> rows = kernel_rows(table.rows);
  ProfileFit fit = fit_profile(load_gpu_profile("h200_sxm"), rows, "h200_kernels.csv");
};

const Fitted& fitted() {
  static const Fitted f;
  return f;
}

FamilyErrors held_out(const std::string& family) {
  std::vector<double> ratios;
  for (const HeldOut& h : fitted().fit.held_out)
    if (h.row->family == family) ratios.push_back(h.predicted_us / h.row->measurement.median_us);
  return summarize_errors(ratios);
}

}  // namespace

TEST_CASE("held-out shape families of the compute kernels: median at most 5 %, p90 at most 12 %") {
  const std::map<std::string, int> rows{
      {"gemm", 209}, {"grouped_gemm", 111}, {"attention", 26}, {"flash_kda", 40}, {"triton_kda", 7}};
  for (const auto& [family, n] : rows) {
    CAPTURE(family);
    const FamilyErrors e = held_out(family);
    CHECK(e.n == n);
    CHECK(e.median <= 0.05);
    CHECK(e.p90 <= 0.12);
    CHECK(std::abs(e.bias) <= 0.02);
  }
}

TEST_CASE("held-out sizes of streaming kernels and copies: median at most 8 %") {
  CHECK(held_out("memory").median <= 0.08);
  CHECK(held_out("copy").median <= 0.08);
  CHECK(held_out("newton_schulz").median <= 0.08);
}

TEST_CASE("no row is predicted by a curve that saw its shape family") {
  const Fitted& f = fitted();
  std::map<std::string, std::vector<const KernelRow*>> gemm;
  std::vector<const KernelRow*> all;
  for (const KernelRow& r : f.rows)
    if (r.curve == "kda_flash_forward") all.push_back(&r);
  // Distorting one family must not change its own held-out predictions.
  std::vector<KernelRow> changed;
  for (const KernelRow* r : all) changed.push_back(*r);
  for (KernelRow& r : changed)
    if (r.shape_family == "H=64;nseq=1") r.measurement.median_us *= 1.5;
  std::vector<const KernelRow*> pointers;
  for (const KernelRow& r : changed) pointers.push_back(&r);
  const GpuLimits limits = load_gpu_profile("h200_sxm").limits;
  const std::vector<double> before = cross_validate("kda_flash_forward", all, limits);
  const std::vector<double> after = cross_validate("kda_flash_forward", pointers, limits);
  bool others_changed = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->shape_family == "H=64;nseq=1")
      CHECK(before[i] == after[i]);
    else
      others_changed = others_changed || before[i] != after[i];
  }
  CHECK(others_changed);
}

TEST_CASE("coefficients are physical") {
  for (const auto& [name, curve] : fitted().fit.profile.curves) {
    CAPTURE(name);
    for (const auto& [key, value] : curve.coefficients) {
      CAPTURE(key);
      CHECK(value >= 0.0);
      if (key == "bw_hbm" && name.rfind("copy_", 0) != 0 && name.rfind("grouped", 0) != 0) CHECK(value <= 1.06 * 4.8);
      if (key == "tile_small" || key == "tile_medium") CHECK(value <= 1.1);
    }
  }
  const CostCurve& gemm = fitted().fit.profile.curves.at("gemm_bf16");
  CHECK(gemm.at("rate_peak") == doctest::Approx(930).epsilon(0.05));
  const CostCurve& flash = fitted().fit.profile.curves.at("kda_flash_forward");
  CHECK(flash.at("sm_chunk_us") == doctest::Approx(1.557).epsilon(0.02));   // k3-facts 4.5
  CHECK(flash.at("chunk_head_ns") == doctest::Approx(13.3).epsilon(0.03));  // k3-facts 4.5
}

TEST_CASE("constants are read off their rows") {
  const GpuProfile& p = fitted().fit.profile;
  CHECK(p.launch.eager.microseconds() == doctest::Approx(10.4).epsilon(0.01));
  CHECK(p.host.single.value() / kGB == doctest::Approx(55.4).epsilon(0.02));
  CHECK(p.host.both.value() / kGB == doctest::Approx(47).epsilon(0.06));
  CHECK(p.slowdown.compute_beside_host_copy == 1.0);
  CHECK(p.slowdown.compute_beside_hbm_copy == doctest::Approx(1.13).epsilon(0.01));
  CHECK(p.slowdown.compute_beside_all_reduce == doctest::Approx(1.13).epsilon(0.01));
}

TEST_CASE("the profile survives writing and reading") {
  const Fitted& f = fitted();
  FitConditions conditions;
  conditions.header = f.table.header;
  conditions.files = {"it's a file.csv"};
  std::ofstream("round_trip.yaml") << profile_yaml(f.fit.profile, conditions);
  const GpuProfile back = load_gpu_profile("round_trip.yaml");
  CHECK(back.curves.size() == f.fit.profile.curves.size());
  for (const auto& [name, curve] : f.fit.profile.curves) {
    CAPTURE(name);
    const CostCurve& other = back.curves.at(name);
    CHECK(other.form == curve.form);
    CHECK(other.inherited == curve.inherited);
    if (curve.inherited) continue;  // not written; derived from the fitted ones on reading
    for (const auto& [key, value] : curve.coefficients) CHECK(other.at(key) == doctest::Approx(value).epsilon(1e-4));
  }
  CHECK(back.host.single.value() == doctest::Approx(f.fit.profile.host.single.value()).epsilon(1e-3));
  CHECK(back.limits.usable_memory.gibibytes() == doctest::Approx(139.8).epsilon(1e-4));
}

TEST_CASE("the shipped H200 profile is the fit of the reference and our own rows, with the reference's power limit") {
  const std::string own = K3SIM_SOURCE_DIR "/calibrate/measurements/";
  const std::vector<std::string> names{"h200_kernels.csv", own + "h200_kernels.csv", own + "h200_libraries.csv",
                                       own + "h200_fla.csv"};
  std::vector<MeasurementTable> tables{fitted().table};
  for (std::size_t i = 1; i < names.size(); ++i) tables.push_back(read_measurements(names[i]));
  const MergedMeasurements merged = merge_measurements(tables, names);
  CHECK(merged.notes.size() <= 8);
  ProfileFit fit = fit_profile(load_gpu_profile("h200_sxm"), kernel_rows(merged.rows), names[0]);
  take_power_limit(fit.profile, fitted().fit.profile);
  const GpuProfile shipped = load_gpu_profile("h200_sxm");
  for (const auto& [name, curve] : fit.profile.curves) {
    CAPTURE(name);
    const CostCurve& other = shipped.curves.at(name);
    for (const auto& [key, value] : curve.coefficients) {
      CAPTURE(key);
      CHECK(other.at(key) == doctest::Approx(value).epsilon(1e-3));
    }
    CHECK(other.rows == curve.rows);
    if (name == "gemm_bf16" || name == "gemm_fp8") {  // leaving out whole shape families
      CHECK(curve.median_error <= 0.05);
      CHECK(curve.p90_error <= 0.12);
      CHECK(curve.rows >= (name == "gemm_fp8" ? 280 : 750));
    }
  }
}
