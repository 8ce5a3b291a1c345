// Reads hardware_profiles/collectives/GPU.yaml (curves, rates, SM counts), the tuning table and the fabric it names.
// A profile may inherit another one: its curves are then rescaled by `speed` (ratio of marginal bus bandwidth) and
// `latency` (time of a tiny message), per collective; the result carries the tier "borrowed".
// Source: hardware_profiles/README.md; rule for borrowed curves: hardware notes section 3.2 (H800, B200, GB200 rows).
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/comm/collectives.h"
#include "models/config/yaml_reader.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& curve_kinds() {
  static const std::vector<std::string> names{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  return names;
}

int kind_index(const YamlNode& node, const std::string& name) {
  const auto& names = curve_kinds();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) {
    node.problem("unknown collective '" + name + "'", did_you_mean(name, names));
    return -1;
  }
  return static_cast<int>(it - names.begin());
}

void read_triple(const YamlNode& parent, const char* name, PerProtocol& out) {
  std::vector<double> v;
  if (!parent.read(name, v)) return;
  if (v.size() != out.size()) {
    parent.child(name).problem("needs three values (LL, LL128, Simple), got " + std::to_string(v.size()));
    return;
  }
  std::copy(v.begin(), v.end(), out.begin());
}

void read_latencies(const YamlNode& table, std::array<PerProtocol, kAlgorithms>& out) {
  for (const Algorithm a : {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree, Algorithm::pat}) {
    read_triple(table, to_string(a), out[static_cast<std::size_t>(a)]);
  }
}

NcclTuning load_tuning(const std::string& path, const std::string& architecture) {
  const YamlDocument doc = YamlDocument::load(path);
  const YamlNode root = doc.root();
  NcclTuning t;
  root.require("version", t.version);
  read_latencies(root.child("base_us"), t.base_us);
  read_latencies(root.child("nvlink_us"), t.nvlink_us);
  read_latencies(root.child("network_us"), t.network_us);
  root.require("ll_cap_one_node_GBps", t.ll_cap_one_node);
  root.require("ll_cap_two_nodes_GBps", t.ll_cap_two_nodes);
  root.require("ll_cap_multi_node_GBps", t.ll_cap_multi_node);
  root.require("ll128_per_channel_GBps", t.ll128_per_channel);
  const YamlNode tree = root.child("tree");
  tree.require("bandwidth", t.tree_bandwidth);
  tree.require("ll_divisor", t.tree_ll_divisor);
  tree.require("ll128_one_node", t.tree_ll128_one_node);
  tree.require("ll128_multi_node", t.tree_ll128_multi_node);
  const YamlNode correction = tree.child("correction");
  for (const Protocol p : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    correction.require(to_string(p), t.tree_correction[static_cast<std::size_t>(p)]);
  }
  const YamlNode ring = root.child("ring");
  ring.require("ll", t.ring_ll);
  ring.require("ll128", t.ring_ll128);
  ring.require("multi_node_latency", t.ring_multi_node_latency);
  const YamlNode pat = root.child("pat");
  pat.require("bandwidth", t.pat_bandwidth);
  pat.require("per_rank_us", t.pat_per_rank_us);
  pat.require("network_divisor", t.pat_network_divisor);
  root.require("network_overhead_us", t.network_overhead_us);
  const YamlNode nvls = root.child("nvls_efficiency");
  for (const YamlNode& e : nvls.entries()) {
    if (e.name() == architecture) e.to(t.nvls_efficiency);
  }
  doc.finish();
  return t;
}

void check_curve(const YamlNode& node, const TimeCurve& c) {
  if (c.bytes.size() < 2 || c.bytes.size() != c.seconds.size()) {
    node.problem("needs as many times as sizes and at least two, got " + std::to_string(c.bytes.size()) + " and " +
                 std::to_string(c.seconds.size()));
    return;
  }
  for (std::size_t i = 1; i < c.bytes.size(); ++i) {
    if (c.bytes[i] <= c.bytes[i - 1]) node.problem("sizes must ascend");
    if (c.seconds[i] <= 0) node.problem("times must be positive");
  }
}

void read_curves(const YamlNode& list, CommModel& m) {
  std::array<std::vector<TimeCurve>, kCollectiveKinds> own;
  for (const YamlNode& item : list.items()) {
    TimeCurve c;
    std::string kind;
    item.require("collective", kind);
    item.require("ranks", c.ranks);
    item.require("bytes", c.bytes);
    item.require("us", c.seconds);
    for (double& s : c.seconds) s *= 1e-6;
    check_curve(item, c);
    // Interpolation needs times that grow; a reading below an earlier one is noise of the measurement.
    for (std::size_t i = 1; i < c.seconds.size(); ++i) c.seconds[i] = std::max(c.seconds[i], c.seconds[i - 1]);
    const int k = kind_index(item.child("collective"), kind);
    if (k >= 0) own[static_cast<std::size_t>(k)].push_back(std::move(c));
  }
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (own[k].empty()) continue;
    std::sort(own[k].begin(), own[k].end(), [](const TimeCurve& a, const TimeCurve& b) { return a.ranks < b.ranks; });
    m.curves[k] = own[k];
  }
}

// borrow: {all_reduce: {speed: 1.6, latency: 25 us}, ...}; a kind that is not named is taken over as it is.
void apply_borrow(const YamlNode& borrow, CommModel& m) {
  for (auto& curves : m.curves) {
    for (TimeCurve& c : curves) c.provenance = worst(c.provenance, Provenance::borrowed);
  }
  for (const YamlNode& entry : borrow.entries()) {
    const int k = kind_index(entry, entry.name());
    double speed = 1;
    Time latency;
    entry.read("speed", speed);
    const bool has_latency = entry.read("latency", latency);
    if (speed <= 0) entry.child("speed").problem("must be positive");
    if (k < 0 || speed <= 0) continue;
    auto& curves = m.curves[static_cast<std::size_t>(k)];
    if (curves.empty()) continue;
    // `latency` is that of the largest table; smaller groups keep their proportion to it.
    const double reference = curves.back().seconds.front();
    for (TimeCurve& c : curves) {
      const double first = c.seconds.front() * (has_latency ? latency.seconds() / reference : 1.0);
      c = rescaled(c, speed, first);
    }
  }
}

void read_rates(const YamlNode& root, CommModel& m) {
  Bandwidth nvlink(m.nvlink_rate);
  root.read("nvlink", nvlink);
  m.nvlink_rate = nvlink.value();
  const YamlNode p2p = root.child("p2p");
  p2p.read("rate", m.p2p_rate);
  p2p.read("latency", m.p2p_latency);
  p2p.read("eager_issue", m.eager_issue);
  root.read("slow_stack_factor", m.slow_stack_factor);
  const YamlNode nvls = root.child("nvls");
  nvls.read("present", m.nvls);
  nvls.read("min_ranks", m.nvls_min_ranks);
  const YamlNode sms = root.child("sms");
  sms.read("ring", m.sms_ring);
  sms.read("nvls", m.sms_nvls);
  sms.read("p2p", m.sms_p2p);
  root.read("chunk_per_nic", m.chunk_per_nic);
  if (m.p2p_rate.value() <= 0) p2p.child("rate").problem("must be positive");
}

}  // namespace

CommModel load_comm_model(const std::string& path) {
  const YamlDocument doc = YamlDocument::load(path);
  const YamlNode root = doc.root();
  const fs::path folder = fs::path(path).parent_path();
  CommModel m;
  std::string parent, tuning, fabric, architecture;
  if (root.read("inherit", parent)) m = load_comm_model((folder / (parent + ".yaml")).string());
  root.require("gpu", m.name);
  root.require("architecture", architecture);
  root.require("tuning", tuning);
  root.require("fabric", fabric);
  m.calibrated_on.clear();
  root.read("calibrated_on", m.calibrated_on);
  read_rates(root, m);
  read_curves(root.child("curves"), m);
  if (!parent.empty()) apply_borrow(root.child("borrow"), m);
  doc.finish();
  m.tuning = load_tuning((folder / (tuning + ".yaml")).string(), architecture);
  m.scale_out = load_scale_out((folder.parent_path() / "fabric" / (fabric + ".yaml")).string());
  return m;
}

ScaleOut load_scale_out(const std::string& path) {
  const YamlDocument doc = YamlDocument::load(path);
  const YamlNode root = doc.root();
  ScaleOut s;
  root.require("name", s.name);
  const YamlNode node = root.child("scale_out");
  node.require("nic_payload", s.nic_payload);
  node.require("all_to_all_payload", s.all_to_all_payload);
  node.require("device_latency", s.device_latency);
  node.require("switch_latency", s.switch_latency);
  node.require("send_latency", s.send_latency);
  node.require("message_overhead", s.message_overhead);
  if (s.nic_payload.value() <= 0) node.child("nic_payload").problem("must be positive");
  if (s.all_to_all_payload.value() <= 0) node.child("all_to_all_payload").problem("must be positive");
  root.child("topology").accept_all();  // read by load_fabric
  doc.finish();
  return s;
}

}  // namespace k3sim
