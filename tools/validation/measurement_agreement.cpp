// Source: measurement_agreement.h.
#include "tools/validation/measurement_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibrate/fit/curve_fit.h"

namespace k3sim {

namespace {

constexpr double kMoreWork = 4.0, kFlatGrowth = 1.5, kAgreeing = 0.05;

// Parameters sorted by name, so that files written by different programs meet.
std::string sorted_params(const std::string& params) {
  std::set<std::string> parts;
  for (std::size_t from = 0; from < params.size();) {
    const std::size_t to = std::min(params.find(';', from), params.size());
    parts.insert(params.substr(from, to - from));
    from = to + 1;
  }
  return fmt::format("{}", fmt::join(parts, ";"));
}

struct Entry {
  std::string group, key, params;
  double work = 0, sum_us = 0;
  int count = 0;
  bool latency = false;
  double us() const { return sum_us / count; }
};

std::string group_of(const KernelId& id) {
  return fmt::format("{},{},{}", id.section, id.kernel, id.pass);
}

std::vector<Entry> entries(const std::vector<Measurement>& rows) {
  std::vector<Entry> out;
  std::map<std::string, std::size_t> place;
  for (const Measurement& m : rows) {
    const std::string params = sorted_params(m.id.params);
    const std::string key = fmt::format("{},{},{}", group_of(m.id), m.id.dtype, params);
    const auto [found, is_new] = place.emplace(key, out.size());
    if (is_new) out.push_back({group_of(m.id), key, params, std::max(m.id.flops, m.id.bytes), 0, 0, false});
    Entry& e = out[found->second];
    e.sum_us += m.median_us;
    ++e.count;
  }
  return out;
}

// Only sizes of pure transfers form a row of growing work; products of other shapes are not comparable that way.
void mark_latency(std::vector<Entry>& rows) {
  for (Entry& small : rows)
    for (const Entry& large : rows) {
      const bool one_line = small.group == large.group && large.params.find("bytes=") != std::string::npos;
      if (one_line && large.work >= kMoreWork * small.work && large.us() < kFlatGrowth * small.us())
        small.latency = true;
    }
}

}  // namespace

std::vector<AgreementRow> compare_measurements(const std::vector<Measurement>& rows,
                                               const std::vector<Measurement>& other) {
  std::vector<Entry> a = entries(rows), b = entries(other);
  mark_latency(a);
  mark_latency(b);
  std::map<std::string, const Entry*> by_key;
  for (const Entry& e : b) by_key[e.key] = &e;
  std::vector<AgreementRow> out;
  for (const Entry& e : a) {
    const auto found = by_key.find(e.key);
    if (found == by_key.end()) continue;
    out.push_back({e.group, e.params, e.us(), found->second->us(), e.latency || found->second->latency});
  }
  return out;
}

std::vector<AgreementGroup> summarize_agreement(const std::vector<AgreementRow>& rows) {
  std::vector<AgreementGroup> out;
  std::map<std::string, std::vector<double>> ratios;
  for (const AgreementRow& r : rows) {
    auto group = std::find_if(out.begin(), out.end(), [&](const AgreementGroup& g) { return g.group == r.group; });
    if (group == out.end()) group = out.insert(out.end(), AgreementGroup{.group = r.group});
    if (r.latency) {
      ++group->latency_rows;
      continue;
    }
    ++group->rows;
    group->within_5_pct += std::abs(r.difference()) <= kAgreeing ? 1 : 0;
    ratios[r.group].push_back(r.us / r.other_us);
  }
  for (AgreementGroup& g : out) {
    if (g.rows == 0) continue;
    const FamilyErrors e = summarize_errors(ratios[g.group]);
    g.median = e.median, g.p90 = e.p90, g.bias = e.bias;
  }
  return out;
}

}  // namespace k3sim
