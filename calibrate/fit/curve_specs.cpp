// Source: curve_specs.h.
#include "calibrate/fit/curve_specs.h"

namespace k3sim {

namespace {

constexpr double kFixed = 100.0;  // prior that holds a parameter

double tera(double v) {
  return v / kTera;
}

CurveSpec tiles(const GpuLimits& g, bool fp8) {
  const double peak = tera((fp8 ? g.fp8_dense : g.bf16_dense).value()), hbm = tera(g.hbm.value());
  const double loose = fp8 ? 0.3 : 0.1;
  return {.form = "tiles",
          .fewest_rows = fp8 ? 8 : 20,
          .parameters = {{"fixed_us", {fp8 ? 35.0 : 5.0, 0.1}},  // FP8 calls also handle scales
                         {"rate_peak", {(fp8 ? 1.0 : 0.91) * peak, 0.1}},
                         {"bw_hbm", {0.8 * hbm, loose}},
                         {"bw_epilogue", {0.85 * hbm, loose}},
                         {"blend", {3, loose}},
                         {"tile_medium", {0.95, loose}},
                         {"tile_small", {0.75, loose}},
                         {"split_us", {3, loose}},
                         {"split_traffic", {0.5, loose}},
                         {"dgrad", {1.02, loose}},
                         {"wgrad", {1.02, loose}},
                         {"throttle", {0.08, 0.1}},
                         {"throttle_onset", {100, loose}}},
          .linear_terms = {},
          .fastest_bw = 0};
}

CurveSpec grouped(const GpuLimits& g, bool fp8) {
  const double peak = tera((fp8 ? g.fp8_dense : g.bf16_dense).value()), hbm = tera(g.hbm.value());
  return {.form = "grouped_tiles",
          .fewest_rows = 12,
          .parameters = {{"fixed_us", {14, 0.1}},
                         {"group_us", {0.35, 0.1}},
                         {"rate_peak", {0.89 * peak, 0.1}},
                         {"tile_small", {0.6, 0.1}},
                         {"bw_hbm", {0.85 * hbm, 0.1}},
                         {"bw_sparse", {0.75 * hbm, 0.1}},
                         {"bw_wgrad", {0.8 * hbm, 0.1}},
                         {"bw_epilogue", {0.9 * hbm, 0.1}},
                         {"blend", {4, 0.1}},
                         {"sm_tile_us", {0.1, 0.1}},
                         {"throttle", {0.05, 0.1}},
                         {"throttle_onset", {100, 0.1}}},
          .linear_terms = {},
          .fastest_bw = 0};
}

CurveSpec attention(const GpuLimits& g, bool fa2, bool forward) {
  const double share = (fa2 ? 0.45 : 0.9) * (forward ? 1.0 : 0.85);
  return {.form = "attention",
          .fewest_rows = 4,
          .parameters = {{"fixed_us", {5, 1.0}},
                         {"rate_peak", {share * tera(g.bf16_dense.value()), 0.1}},
                         {"half_keys", {forward ? 250.0 : 400.0, 0.1}},
                         {"softmax_dims", {64, 0.1}},
                         {"uneven", {forward ? 0.2 : 0.7, 0.1}},
                         {"throttle", {0.03, 0.1}},
                         {"throttle_onset", {1000, 0.3}}},
          .linear_terms = {},
          .fastest_bw = 0};
}

CurveSpec serial_chain() {
  return {.form = "serial_chain",
          .fewest_rows = 8,
          .parameters = {{"fixed_us", {19, 0.1}},
                         {"sm_chunk_us", {1.55, 0.1}},
                         {"pair_share", {0.8, 0.3}},
                         {"crowd_share", {1.0, 0.3}},
                         {"chunk_head_ns", {13.3, 0.1}}},
          .linear_terms = {},
          .fastest_bw = 0};
}

CurveSpec kda_prepass() {
  return {.form = "prepass_chain",
          .fewest_rows = 8,
          .parameters = {{"fixed_us", {7, 0.1}},
                         {"sm_chunk_us", {1.75, 0.1}},
                         {"pair_share", {0.9, 0.3}},
                         {"crowd_share", {1.0, 0.3}}},
          .linear_terms = {},
          .fastest_bw = 0};
}

CurveSpec linear(int fewest, std::vector<std::string> terms) {
  return {.form = "linear", .fewest_rows = fewest, .parameters = {}, .linear_terms = std::move(terms), .fastest_bw = 0};
}

}  // namespace

CurveSpec curve_spec(const std::string& key, const GpuLimits& g) {
  CurveSpec spec;
  if (key.rfind("gemm_", 0) == 0 && key != "gemm_fp32")
    spec = tiles(g, key != "gemm_bf16");
  else if (key == "grouped_bf16" || key == "grouped_fp8")
    spec = grouped(g, key == "grouped_fp8");
  else if (key.rfind("attention_", 0) == 0)
    spec = attention(g, key.find("fa2") != std::string::npos, key.find("forward") != std::string::npos);
  else if (key == "kda_flash_forward")
    spec = serial_chain();
  else if (key.rfind("kda_prepass_", 0) == 0)
    spec = kda_prepass();
  else if (key.rfind("kda_fla_", 0) == 0)
    spec = linear(2, {"rate_peak", "fixed_us"});
  else if (key == "norm")
    spec = linear(3, {"bw_hbm", "half_width", "fixed_us"});
  else if (key == "newton_schulz")
    spec = linear(3, {"rate_peak", "bw_hbm", "fixed_us"});
  else if (key == "copy" || key == "add" || key == "activation" || key == "gather" || key == "quantize" ||
           key == "topk" || key == "adamw" || key.rfind("copy_", 0) == 0)
    spec = linear(2, {"bw_hbm", "fixed_us"});
  if (spec.form == "linear" && key.rfind("copy_", 0) != 0) spec.fastest_bw = 1.05 * tera(g.hbm.value());
  if (!spec.parameters.empty()) spec.parameters.push_back({"sms", {static_cast<double>(g.sm_count), kFixed}});
  return spec;
}

}  // namespace k3sim
