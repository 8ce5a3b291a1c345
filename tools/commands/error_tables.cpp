// See error_tables.h. Source: there.
#include "tools/commands/error_tables.h"

#include <fmt/format.h>

namespace k3sim {

namespace {

const char* const kBoth = "prediction and publication";

PageColumn words(const char* key, const char* title, const char* what) {
  return {key, title, "", what, true, false, "publication"};
}

PageColumn number(const char* key, const char* title, const char* unit, const char* what, const char* source = kBoth) {
  return {key, title, unit, what, false, false, source};
}

const char* verdict_text(const std::string& verdict) {
  if (verdict == "source") return "lies in the source";
  if (verdict == "model") return "not modelled well enough";
  return verdict == "open" ? "open" : "not dissected";
}

}  // namespace

PageTable feature_table(const std::vector<FeatureLevel>& levels) {
  PageTable t{"features",
              "What the errors go with",
              kBoth,
              {words("feature", "feature", "what runs have in common"), words("level", "level", "of the feature"),
               number("share", "explains", "%",
                      "adjusted share of the spread of log(predicted / measured) that the feature explains; features "
                      "overlap, shares do not add up"),
               number("n", "n", "1", "predicted runs"), number("median", "median", "%", "of the absolute error"),
               number("p90", "p90", "%", "90th percentile of the absolute error"),
               number("bias", "bias", "%", "mean of the signed error")},
              {}};
  for (const FeatureLevel& l : levels)
    t.rows.push_back({l.feature, l.level, csv_number(l.share_pct), fmt::format("{}", l.errors.predicted),
                      csv_number(l.errors.median_abs), csv_number(l.errors.p90_abs), csv_number(l.errors.bias)});
  return t;
}

PageTable largest_error_table(const std::vector<LargeError>& errors) {
  PageTable t{"largest",
              "The largest errors, dissected",
              kBoth,
              {words("case", "case", "id in scenarios/validation/cases.yaml"),
               number("error", "error", "%", "predicted over measured, less one"),
               words("verdict", "verdict", "where the error comes from"),
               words("why", "why", "scenarios/validation/explanations.yaml")},
              {}};
  for (const LargeError& e : errors)
    t.rows.push_back({e.row->id, csv_number(e.row->error_pct()), verdict_text(e.why.verdict), e.why.text});
  return t;
}

PageTable largest_error_parts(const std::vector<LargeError>& errors) {
  const char* mean = "mean over ranks";
  PageTable t{"largest_parts",
              "Where the time of these predictions goes",
              kBoth,
              {words("case", "case", "id in scenarios/validation/cases.yaml"),
               number("measured", "measured", "s", "step", "publication"),
               number("predicted", "predicted", "s", "step", "prediction"),
               number("compute", "compute", "s", "with recompute, mean over ranks", "prediction"),
               number("communication", "communication", "s", "exposed, mean over ranks", "prediction"),
               number("bubble", "bubble", "s", mean, "prediction"),
               number("rest", "rest", "s", "host, optimizer, copies and waits, mean over ranks", "prediction")},
              {}};
  for (const LargeError& e : errors)
    t.rows.push_back({e.row->id, csv_number(e.row->measured), csv_number(e.row->predicted), csv_number(e.compute_s),
                      csv_number(e.communication_s), csv_number(e.bubble_s), csv_number(e.rest_s)});
  return t;
}

}  // namespace k3sim
