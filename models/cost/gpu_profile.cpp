// Reads hardware_profiles/gpu/NAME.yaml.
//   same_as: OTHER        the whole profile of OTHER under this name
//   borrow: {from, compute, memory, clock}   curves absent here come from OTHER; see transfer_curve
// Source: hardware_profiles/README.md (fields); hardware notes section 1.
#include "models/cost/gpu_profile.h"

#include <fmt/format.h>

#include "models/config/data_files.h"
#include "models/config/yaml_reader.h"
#include "models/cost/transfer.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

namespace {

constexpr const char* kFolder = "hardware_profiles/gpu";

std::string profile_file(const std::string& name) {
  if (name.size() > 5 && name.compare(name.size() - 5, 5, ".yaml") == 0) return name;
  const std::vector<std::string> known = known_names(kFolder);
  for (const std::string& k : known)
    if (k == name) return data_path(std::string(kFolder) + "/" + name + ".yaml");
  throw ConfigError({Problem{{}, "gpu", fmt::format("no GPU profile '{}'", name), did_you_mean(name, known)}});
}

void read_limits(const YamlNode& root, GpuProfile& p) {
  const YamlNode d = root.child("datasheet");
  GpuLimits& l = p.limits;
  d.require("sm_count", l.sm_count);
  d.require("bf16_dense", l.bf16_dense);
  l.fp8_dense = l.bf16_dense;
  d.read("fp8_dense", l.fp8_dense);
  p.fp32 = l.bf16_dense * (1.0 / 15.0);  // Ampere and Hopper: 16.0 and 14.8
  d.read("fp32", p.fp32);
  d.require("hbm", l.hbm);
  d.require("usable_memory", l.usable_memory);
  d.read("tdp_watt", p.tdp_watt);
  root.require("price_per_gpu_hour", l.price_per_gpu_hour);
  if (l.sm_count < 1) d.child("sm_count").problem("must be at least 1");
  const YamlNode host = root.child("host_link");
  host.require("single", p.host.single);
  host.require("both", p.host.both);
  host.require("all_busy", p.host.all_busy);
  host.read("latency", p.host.latency);
  l.host_link = p.host.all_busy;
}

void read_overheads(const YamlNode& root, GpuProfile& p) {
  const YamlNode launch = root.child("launch");
  launch.read("host", p.launch.host);
  launch.read("eager", p.launch.eager);
  launch.read("gap", p.launch.gap);
  const YamlNode s = root.child("slowdown");
  s.read("compute_beside_host_copy", p.slowdown.compute_beside_host_copy);
  s.read("compute_beside_hbm_copy", p.slowdown.compute_beside_hbm_copy);
  s.read("compute_beside_all_reduce", p.slowdown.compute_beside_all_reduce);
  s.read("compute_beside_all_to_all", p.slowdown.compute_beside_all_to_all);
  s.read("memory_beside_comm", p.slowdown.memory_beside_comm);
  root.read("kda", p.kda);
  root.read("attention", p.attention);
  if (p.kda != "fla" && p.kda != "flash_kda") root.child("kda").problem("must be fla or flash_kda");
  if (p.attention != "cudnn" && p.attention != "fa2") root.child("attention").problem("must be cudnn or fa2");
}

Provenance provenance_of(const YamlNode& node) {
  const std::string text = node.text();
  for (int i = 0; i <= static_cast<int>(Provenance::missing); ++i)
    if (text == to_string(static_cast<Provenance>(i))) return static_cast<Provenance>(i);
  node.problem("unknown provenance '" + text + "'", "measured, fitted, boundary, borrowed, datasheet or assumed");
  return Provenance::missing;
}

CostCurve read_curve(const YamlNode& node) {
  CostCurve c;
  node.require("form", c.form);
  c.provenance = provenance_of(node.child("provenance"));
  node.read("rows", c.rows);
  node.read("work_min", c.work_min);
  node.read("work_max", c.work_max);
  node.read("median_error", c.median_error);
  node.read("p90_error", c.p90_error);
  node.read("p95_ratio", c.p95_ratio);
  node.read("note", c.note);
  for (const YamlNode& v : node.child("coefficients").entries()) {
    double value = 0;
    if (!v.to(value)) continue;
    if (!(value >= 0)) v.problem(fmt::format("{} is negative: coefficients are times, rates or ratios", value));
    c.coefficients[v.name()] = value;
  }
  return c;
}

void read_borrow(const YamlNode& node, Borrow& b) {
  if (!node.present()) return;
  node.require("from", b.from);
  node.read("compute", b.compute);
  node.read("memory", b.memory);
  node.read("clock", b.clock);
  node.read("throttle", b.throttle);
  node.read("note", b.note);
}

}  // namespace

double CostCurve::at(const std::string& name) const {
  const auto found = coefficients.find(name);
  if (found == coefficients.end())
    throw ConfigError(fmt::format("a curve of form '{}' lacks the coefficient '{}'", form, name));
  return found->second;
}

GpuLimits gpu_limits(const GpuProfile& profile) {
  return profile.limits;
}

std::vector<std::string> known_gpu_profiles() {
  return known_names(kFolder);
}

void inherit_curves(GpuProfile& p) {
  if (!p.borrow.from.empty()) {
    const GpuProfile base = load_gpu_profile(p.borrow.from);
    for (const auto& [name, curve] : base.curves) {
      // Copies over the host link belong to the node, derived curves follow from this profile's own.
      const bool derived = curve.inherited && is_derived_curve(name);
      if (p.curves.count(name) != 0 || name.rfind("copy_", 0) == 0 || derived) continue;
      p.curves[name] = transfer_curve(curve, p.borrow, p.limits.sm_count);
      p.curves[name].inherited = true;
    }
  }
  derive_curves(p);
}

GpuProfile load_gpu_profile(const std::string& name) {
  YamlDocument doc = YamlDocument::load(profile_file(name));
  const YamlNode root = doc.root();
  GpuProfile p;
  root.require("name", p.limits.name);
  if (std::string other; root.read("same_as", other)) {
    doc.finish();
    GpuProfile same = load_gpu_profile(other);
    same.limits.name = p.limits.name;
    return same;
  }
  root.read("architecture", p.architecture);
  root.require("collectives", p.collectives);
  root.read("source", p.source);
  root.child("fit").accept_all();
  read_limits(root, p);
  read_overheads(root, p);
  for (const YamlNode& c : root.child("curves").entries()) p.curves[c.name()] = read_curve(c);
  read_borrow(root.child("borrow"), p.borrow);
  doc.finish();
  inherit_curves(p);
  return p;
}

}  // namespace k3sim
