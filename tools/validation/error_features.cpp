// See error_features.h. Source: there.
#include "tools/validation/error_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/yaml_reader.h"
#include "tools/validation/case_scenario.h"
#include "tools/validation/case_supplement.h"
#include "tools/validation/printed_text.h"

namespace k3sim {

namespace {

constexpr double kClip = 0.3;

std::string depth(const std::optional<int>& degree) {
  if (!degree) return "not stated";
  return *degree <= 1 ? "1" : *degree <= 8 ? "2 to 8" : "over 8";
}

std::string sharding(const Case& c) {
  const std::string t = lower(c.parallel.optimizer);
  if (has(t, "fsdp") || has(t, "zero-3") || has(t, "hsdp")) return "parameters";
  return t == "true" || has(t, "zero-1") || has(t, "zero-2") ? "states" : "none";
}

std::string recompute(const Case& c) {
  const std::string t = lower(c.recompute);
  for (const char* word : {"full", "selective", "none"})
    if (starts(t, word)) return word;
  return "other or not stated";
}

std::string balance(const Case& c) {
  if (c.model.experts == 0) return "dense model";
  if (has(lower(c.notes), "forced to balance") || c.group == "moe-modelzoo") return "forced balance";
  return has(lower(c.token_drop), "capacity") ? "tokens dropped" : "as routed";
}

std::string precision(const ValidationRow& r) {
  const std::string t = lower(r.precision);
  return has(t, "mxfp8") || has(t, "fp8-mx") ? "MXFP8" : has(t, "fp8") ? "FP8" : "16 bit";
}

std::vector<std::pair<std::string, std::string>> features(const Case& c, const ValidationRow& r) {
  std::vector<std::pair<std::string, std::string>> out{{"source", c.group},
                                                       {"GPU", r.gpu},
                                                       {"size of the model", r.size_class},
                                                       {"experts and their balance", balance(c)},
                                                       {"precision", precision(r)},
                                                       {"tensor parallelism", depth(c.parallel.tp)},
                                                       {"pipeline stages", depth(c.parallel.pp)},
                                                       {"context parallelism", depth(c.parallel.cp)},
                                                       {"sharded over data ranks", sharding(c)},
                                                       {"recompute", recompute(c)}};
  if (r.kind == "memory") out.emplace_back("kind of peak", c.measured.memory_kind);
  return out;
}

using Members = std::map<std::string, std::vector<double>>;  // level -> errors in %

double clipped(double error_pct) {
  return std::clamp(std::log1p(error_pct / 100), -kClip, kClip);
}

double share_pct(const Members& levels) {
  double sum = 0, squares = 0, between = 0, n = 0;
  for (const auto& [level, errors] : levels) {
    double own = 0;
    for (double e : errors) own += clipped(e), squares += clipped(e) * clipped(e);
    sum += own;
    n += static_cast<double>(errors.size());
    between += own * own / static_cast<double>(errors.size());
  }
  const double total = squares - sum * sum / n, free = n - static_cast<double>(levels.size());
  if (total <= 0 || free <= 0) return 0;
  return std::max(0.0, 100 * (1 - (1 - (between - sum * sum / n) / total) * (n - 1) / free));
}

void add_parts(const Case& c, LargeError& e) {
  const CaseScenario mapped = case_scenario(c);
  if (!mapped.scenario) return;
  const Machine machine = load_machine(*mapped.scenario);
  StepOptions options;
  options.allow_assumed = true;
  const RankBreakdown b = predict_step(*mapped.scenario, machine, options).summary.mean;
  e.compute_s = (b.compute + b.recompute).seconds();
  e.communication_s = (b.tp + b.cp + b.ep + b.pp + b.dp).seconds();
  e.bubble_s = b.bubble.seconds();
  e.rest_s = (b.host + b.wait + b.optimizer + b.offload).seconds();
}

}  // namespace

std::vector<FeatureLevel> error_features(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows,
                                         const std::string& kind) {
  std::map<std::string, const Case*> by_id;
  for (const Case& c : cases) by_id[c.id] = &c;
  std::map<std::string, Members> all;
  for (const ValidationRow& r : rows)
    if (r.kind == kind && r.status == "predicted")
      for (const auto& [feature, level] : features(*by_id.at(r.id), r)) all[feature][level].push_back(r.error_pct());
  std::vector<FeatureLevel> out;
  for (const auto& [feature, levels] : all) {
    if (levels.size() < 2) continue;
    const double share = share_pct(levels);
    for (const auto& [level, errors] : levels)
      out.push_back({.feature = feature,
                     .level = level.empty() ? "not stated" : level,
                     .share_pct = share,
                     .errors = summarize_percentages(errors)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FeatureLevel& a, const FeatureLevel& b) { return a.share_pct > b.share_pct; });
  return out;
}

std::vector<Explanation> load_explanations(const std::string& path, const std::vector<Case>& cases) {
  YamlDocument doc = YamlDocument::load(path);
  std::vector<Explanation> out;
  for (const YamlNode& n : doc.root().items()) {
    Explanation e;
    n.require("case", e.pattern);
    n.require("verdict", e.verdict);
    n.require("text", e.text);
    if (e.verdict != "source" && e.verdict != "model" && e.verdict != "open")
      n.child("verdict").problem("must be source, model or open");
    const bool known = !e.pattern.empty() && std::any_of(cases.begin(), cases.end(),
                                                         [&](const Case& c) { return matches_case(e.pattern, c.id); });
    if (!known) n.child("case").problem(fmt::format("'{}' matches no case", e.pattern));
    out.push_back(std::move(e));
  }
  doc.throw_if_problems();
  return out;
}

std::vector<LargeError> largest_errors(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows,
                                       const std::vector<Explanation>& explanations, std::size_t count) {
  std::vector<LargeError> out;
  for (const ValidationRow& r : rows)
    if (r.kind == "model" && r.status == "predicted") out.push_back({.row = &r, .why = {}});
  std::stable_sort(out.begin(), out.end(), [](const LargeError& a, const LargeError& b) {
    return std::fabs(a.row->error_pct()) > std::fabs(b.row->error_pct());
  });
  out.resize(std::min(count, out.size()));
  for (LargeError& e : out) {
    const auto why = std::find_if(explanations.begin(), explanations.end(),
                                  [&](const Explanation& x) { return matches_case(x.pattern, e.row->id); });
    if (why != explanations.end()) e.why = *why;
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.id == e.row->id; });
    if (found != cases.end()) add_parts(*found, e);
  }
  return out;
}

}  // namespace k3sim
