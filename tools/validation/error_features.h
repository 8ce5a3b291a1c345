// What goes with the residual errors: how much of their spread each feature of a run explains, and how its levels fare;
// and the largest errors with what is known of them.
//   share = 1 - (1 - SSbetween / SStotal) (N - 1) / (N - L), the adjusted coefficient of determination of the level
//   means
// over log(predicted / measured), clipped at +-0.3 so that single runs do not decide, N runs in L levels. Features
// overlap (a source has its GPU): shares do not add up. Negative shares (no more than chance) are shown as 0. Source:
// one-way analysis of variance; adjustment after Theil.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

struct FeatureLevel {
  std::string feature, level;
  double share_pct = 0;  // of the feature
  ErrorSummary errors;
};
// Over predicted rows of that kind (model or memory); features by falling share, levels by name. At least two levels.
std::vector<FeatureLevel> error_features(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows,
                                         const std::string& kind);

struct Explanation {
  std::string pattern, verdict, text;  // verdict: source, model or open
};
// Throws ConfigError, also for a pattern that matches no case.
std::vector<Explanation> load_explanations(const std::string& path, const std::vector<Case>& cases);

struct LargeError {
  const ValidationRow* row = nullptr;
  double compute_s = 0, communication_s = 0, bubble_s = 0, rest_s = 0;  // of the prediction, mean over ranks
  Explanation why;                                                      // empty when nobody has looked
};
// The steps with the largest absolute errors, largest first, with a fresh prediction of their parts.
std::vector<LargeError> largest_errors(const std::vector<Case>& cases, const std::vector<ValidationRow>& rows,
                                       const std::vector<Explanation>& explanations, std::size_t count = 10);

}  // namespace k3sim
