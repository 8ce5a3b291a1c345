// GitHub Actions: annotations on stdout, Markdown into the file of GITHUB_STEP_SUMMARY. The only place that knows it.
// Limits: at most 10 errors, 10 warnings and 10 notices per step are shown, 50 per job; a step summary may have 1 MiB.
// Source: actions/toolkit docs/problem-matchers.md and docs/commands.md (escaping); engine-design section 19.
#pragma once

#include <string>

#include "tools/regress/compare.h"

namespace k3sim {

constexpr std::size_t kGithubAnnotations = 10;  // per level
constexpr std::size_t kGithubSummaryBytes = 1024 * 1024;

// One line per annotation; the last error says how many more there are when not all fit.
std::string github_annotations(const RegressReport& report);

}  // namespace k3sim
