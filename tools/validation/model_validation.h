// Predicts every case of validation/cases.yaml and compares: step time, and memory where the source gives it.
// Source: product-spec sections 6 and 7 (validate --json).
#pragma once

#include <string>
#include <vector>

#include "tools/validation/case_file.h"

namespace k3sim {

struct ValidationRow {
  std::string id, group, tier, family, kind, status, reason,
      metric;  // kind: model or memory; status: predicted, skipped
  double measured = 0, predicted = 0;
  std::string gpu, precision, size_class;
  bool moe = false;
  std::vector<std::string> assumptions;
  double error_pct() const { return 100.0 * (predicted / measured - 1.0); }
};

// One row per case, and a second one with kind "memory" where memory was measured. Rows are in file order whatever the
// number of threads. network: flows or closed_form as `run` has them, one task per kernel; empty: one task per layer
// pass, which is what the software constants were fitted with.
std::vector<ValidationRow> validate_cases(const std::vector<Case>& cases, int threads, const std::string& network = {});

struct ErrorSummary {
  int predicted = 0, skipped = 0;
  double median_abs = 0, p90_abs = 0, bias = 0, mean_abs = 0;
};
ErrorSummary summarize_errors(const std::vector<const ValidationRow*>& rows);
ErrorSummary summarize_percentages(const std::vector<double>& errors_pct);  // signed, in %

}  // namespace k3sim
