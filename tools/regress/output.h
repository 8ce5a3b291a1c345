// One report, five forms. None of them but github.h knows where it is shown.
// Source: engine-design section 19 (output formats); product-spec section 7 (JSON keys); JUnit XML as in the
// testmoapp/junitxml description (testsuites, testsuite, testcase, failure, system-out).
#pragma once

#include <string>

#include "tools/regress/compare.h"

namespace k3sim {

std::string regress_text(const RegressReport& report);
std::string regress_json(const RegressReport& report);
// One test case per scenario and metric; blocking rows are failures with the category as their type.
std::string regress_junit(const RegressReport& report);
std::string regress_markdown(const RegressReport& report, std::size_t byte_limit);

// "step_time_s 13.2 -> 14.1 (+6.8 %)".
std::string change_text(const RegressRow& row);
// "bubble_s +0.61, rank 3 compute_s +0.20"; empty when nothing explains the row.
std::string explanation_text(const RegressRow& row);

}  // namespace k3sim
