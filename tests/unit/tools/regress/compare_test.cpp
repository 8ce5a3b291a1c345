// Categories of changed predictions, and the forms in which they are printed.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tools/regress/compare.h"
#include "tools/regress/github.h"
#include "tools/regress/output.h"

using namespace k3sim;

namespace {

const RegressTarget kTarget{"s", "s/scenario.yaml", "s/expected.json", false, true};

Baseline baseline(double step, double bubble, double layers = 4) {
  Baseline b;
  b.metrics = {{"step_time_s", step}, {"mfu_pct", 100 / step}, {"bubble_pct", bubble}, {"stages", layers}};
  return b;
}

RegressReport compared(const Baseline& before, const Baseline& after) {
  RegressReport r;
  compare_target(kTarget, before, after, r);
  sort_worst_first(r);
  return r;
}

std::string categories(const RegressReport& r) {
  std::string out;
  for (const RegressRow& row : r.rows) out += row.metric + ":" + to_string(row.category) + " ";
  return out;
}

}  // namespace

TEST_CASE("regress: equal predictions pass without rows") {
  const RegressReport r = compared(baseline(2, 10), baseline(2, 10));
  CHECK(r.rows.empty());
  CHECK(r.pass());
}

TEST_CASE("regress: a slower step is a regression in time and in MFU, the bubble explains it") {
  const RegressReport r = compared(baseline(2, 10), baseline(2.5, 12));
  CHECK(categories(r) == "step_time_s:regression mfu_pct:regression ");
  CHECK_FALSE(r.pass());
}

TEST_CASE("regress: a faster step is an improvement and passes") {
  const RegressReport r = compared(baseline(2, 10), baseline(1.6, 12));
  CHECK(r.count(Category::improvement) == 2);
  CHECK(r.pass());
}

TEST_CASE("regress: a part that moves alone and a neutral number are drift, which blocks") {
  CHECK(categories(compared(baseline(2, 10), baseline(2, 11))) == "bubble_pct:drift ");
  CHECK_FALSE(compared(baseline(2, 10), baseline(2, 10, 5)).pass());
}

TEST_CASE("regress: tolerances are per metric and survive a new record") {
  Baseline before = baseline(2, 10);
  before.metrics[0].rtol = 0.1;
  before.metrics[1].rtol = 0.1;
  CHECK(compared(before, baseline(2.1, 10)).pass());
  Baseline fresh = baseline(2.1, 10);
  keep_tolerances(before, fresh);
  CHECK(fresh.metrics[0].rtol == 0.1);
}

TEST_CASE("regress: a prediction that fails now is a status change and a regression") {
  Baseline broken;
  broken.status = "deadlock";
  broken.reason = "rank 1 at 4: waits";
  const RegressReport r = compared(baseline(2, 10), broken);
  CHECK(r.rows[0].category == Category::status_change);
  CHECK(r.count(Category::regression) == 2);
  CHECK(regress_text(r).find("ok -> deadlock: rank 1 at 4: waits") != std::string::npos);
}

TEST_CASE("regress: a baseline survives being written and read") {
  Baseline b = baseline(2.125, 10);
  b.metrics[0].atol = 0.5;
  b.ranks = {{0, {{"compute_s", 1.5}}}};
  b.order = {"abc"};
  b.reason = "a \"quoted\" reason";
  const Baseline again = baseline_from_json(baseline_to_json(b), "f");
  CHECK(again.find("step_time_s")->value == 2.125);
  CHECK(again.find("step_time_s")->atol == 0.5);
  CHECK(again.ranks[0].parts[0].second == 1.5);
  CHECK(again.reason == b.reason);
  CHECK_THROWS_AS(baseline_from_json("{}", "f"), ConfigError);
}

TEST_CASE("regress: XML and workflow commands are escaped") {
  Baseline broken;
  broken.status = "error";
  broken.reason = "a < b & \"c\"\n50 %";
  const RegressReport r = compared(baseline(2, 10), broken);
  CHECK(regress_junit(r).find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
  CHECK(github_annotations(r).find("%0A50 %25") != std::string::npos);
}

TEST_CASE("regress: a Markdown summary stays below its limit") {
  RegressReport r;
  for (int i = 0; i < 2000; ++i) compare_target(kTarget, baseline(2, 10), baseline(3, 10), r);
  CHECK(regress_markdown(r, 20000).size() < 20000);
}
