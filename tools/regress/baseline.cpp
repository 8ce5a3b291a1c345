// Source: engine-design section 19; see baseline.h.
#include "tools/regress/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

std::string base_name(const std::string& metric) {
  return metric.substr(0, metric.find('@'));
}

Json metric_json(const Metric& m) {
  Json out = {{"value", m.value}};
  if (m.rtol > 0) out["rtol"] = m.rtol;
  if (m.atol > 0) out["atol"] = m.atol;
  return out;
}

Json ranks_json(const std::vector<RankParts>& ranks) {
  Json out = Json::array();
  for (const RankParts& r : ranks) {
    Json row = {{"rank", r.rank}};
    for (const auto& [name, value] : r.parts) row[name] = value;
    out.push_back(row);
  }
  return out;
}

void read_metrics(const Json& from, Baseline& out) {
  for (const auto& [name, entry] : from.items()) {
    Metric m{name};
    if (entry.is_number()) {
      m.value = entry.get<double>();
    } else {
      m.value = entry.at("value").get<double>();
      m.rtol = entry.value("rtol", 0.0);
      m.atol = entry.value("atol", 0.0);
    }
    out.metrics.push_back(m);
  }
}

void read_ranks(const Json& from, Baseline& out) {
  for (const Json& row : from) {
    RankParts r;
    for (const auto& [name, value] : row.items()) {
      if (name == "rank")
        r.rank = value.get<int>();
      else
        r.parts.emplace_back(name, value.get<double>());
    }
    out.ranks.push_back(std::move(r));
  }
}

}  // namespace

const Metric* Baseline::find(const std::string& name) const {
  const auto it = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
  return it == metrics.end() ? nullptr : &*it;
}

MetricInfo metric_info(const std::string& name) {
  struct Entry {
    const char* name;
    MetricInfo info;
  };
  using enum Direction;
  static const Entry kEntries[] = {
      {"step_time_s", {lower_is_better, true}},
      {"step_time_p95_s", {lower_is_better, true}},
      {"makespan", {lower_is_better, true}},
      {"tokens_per_s_per_gpu", {higher_is_better, true}},
      {"model_tflops_per_gpu", {higher_is_better, true}},
      {"mfu_pct", {higher_is_better, true}},
      {"cost_usd_per_step", {lower_is_better, true}},
      {"peak_allocated_gib", {lower_is_better, true}},
      {"peak_reserved_gib", {lower_is_better, true}},
      {"short_by_gib", {lower_is_better, true}},
      {"peak_activations", {lower_is_better, true}},
      {"bubble_pct", {lower_is_better, false}},
  };
  const std::string base = base_name(name);
  for (const Entry& e : kEntries)
    if (base == e.name) return e.info;
  return {};
}

double rounded_value(double v) {
  return v == 0 || !std::isfinite(v) ? 0.0 : std::stod(fmt::format("{:.9g}", v));
}

bool within_tolerance(const Metric& expected, double actual) {
  const double difference = std::fabs(actual - expected.value);
  return difference <= expected.atol || difference <= expected.rtol * std::fabs(expected.value) || difference == 0;
}

// One line per metric and per rank, so that a diff in a pull request shows what moved and nothing else.
std::string baseline_to_json(const Baseline& b) {
  const auto text = [](const std::string& value) { return Json(value).dump(); };
  std::vector<std::string> metrics, ranks;
  for (const Metric& m : b.metrics) metrics.push_back(fmt::format("  {}: {}", text(m.name), metric_json(m).dump()));
  for (const Json& row : ranks_json(b.ranks)) ranks.push_back("  " + row.dump());
  std::string out = "{\n";
  out += " \"about\": \"baseline of k3sim regress; after an intended change: k3sim regress record\",\n";
  out += fmt::format(" \"kind\": {},\n \"status\": {},\n", text(b.kind), text(b.status));
  if (!b.reason.empty()) out += fmt::format(" \"reason\": {},\n", text(b.reason));
  out += fmt::format(" \"metrics\": {{\n{}\n }},\n", fmt::join(metrics, ",\n"));
  out += fmt::format(" \"ranks\": [\n{}\n ],\n \"order\": {},\n", fmt::join(ranks, ",\n"), Json(b.order).dump());
  out += fmt::format(" \"fingerprint\": {},\n \"k3sim_version\": {},\n", text(b.fingerprint), text(b.version));
  out += fmt::format(" \"toolchain\": {},\n \"input_sha256\": {}\n}}\n", text(b.toolchain), text(b.digest));
  return out;
}

Baseline baseline_from_json(const std::string& text, const std::string& file) {
  try {
    const Json j = Json::parse(text);
    Baseline b;
    b.kind = j.value("kind", "scenario");
    b.status = j.value("status", "ok");
    b.reason = j.value("reason", "");
    read_metrics(j.at("metrics"), b);
    if (j.contains("ranks")) read_ranks(j["ranks"], b);
    if (j.contains("order")) b.order = j["order"].get<std::vector<std::string>>();
    b.fingerprint = j.value("fingerprint", "");
    b.version = j.value("k3sim_version", "");
    b.toolchain = j.value("toolchain", "");
    b.digest = j.value("input_sha256", "");
    return b;
  } catch (const nlohmann::json::exception& e) {
    throw ConfigError(fmt::format("no baseline of k3sim regress: {}", e.what()), {}, Place{file, 0, 0});
  }
}

}  // namespace k3sim
