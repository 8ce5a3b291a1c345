// Schedules against 1F1B of the same model: published runs of three papers, and the layouts of a printed grid search.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/config/data_files.h"
#include "tools/validation/case_scenario.h"
#include "tools/validation/mapping_search.h"
#include "tools/validation/schedule_validation.h"

using namespace k3sim;

namespace {

std::vector<Case> cases_named(const std::vector<std::string>& starts) {
  std::vector<Case> out;
  for (Case& c : load_cases(data_path("scenarios/validation/cases.yaml")))
    for (const std::string& s : starts)
      if (c.id.rfind(s, 0) == 0) {
        out.push_back(std::move(c));
        break;
      }
  return out;
}

const ValidationRow* row_of(const std::vector<ValidationRow>& rows, const std::string& id, const std::string& kind) {
  for (const ValidationRow& r : rows)
    if (r.id == id && r.kind == kind) return &r;
  return nullptr;
}

}  // namespace

TEST_CASE("schedules: speed against 1F1B of the same model within a few percent, each vocabulary method on its own") {
  const auto cases = cases_named({"vocabpar-4b-s4k-v256k", "zb-14.6b", "zbv-28.3b-x32-zb-1p-m96"});
  const std::vector<ValidationRow> rows = validate_schedules(cases, 1);
  const struct {
    const char *id, *base;
  } runs[] = {{"vocabpar-4b-s4k-v256k-vocab-1", "against vocabpar-4b-s4k-v256k-baseline"},
              {"vocabpar-4b-s4k-v256k-interlaced", "against vocabpar-4b-s4k-v256k-baseline"},
              {"vocabpar-4b-s4k-v256k-redis", "against vocabpar-4b-s4k-v256k-baseline"},
              {"zb-14.6b-zb-1p-m48", "against zb-14.6b-1f1b-m48"},
              {"zb-14.6b-zb-2p-m128", "against zb-14.6b-1f1b-m128"}};
  std::vector<double> errors;
  for (const auto& run : runs) {
    CAPTURE(run.id);
    const ValidationRow* speed = row_of(rows, run.id, "speed");
    REQUIRE(speed != nullptr);
    CHECK(speed->status == "predicted");
    CHECK(speed->reason == run.base);
    errors.push_back(std::fabs(speed->error_pct()));
    CHECK(errors.back() < 7);
    const ValidationRow* memory = row_of(rows, run.id, "memory");
    REQUIRE(memory != nullptr);
    CHECK(std::fabs(memory->error_pct()) < 10);
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 5);  // the bar for all of them together
  const ValidationRow* alone = row_of(rows, "zbv-28.3b-x32-zb-1p-m96", "speed");
  REQUIRE(alone != nullptr);
  CHECK(alone->status == "skipped");
  CHECK(row_of(rows, "zb-14.6b-1f1b-m48", "speed") == nullptr);  // the base itself is not scored
}

TEST_CASE("schedules: the grid search of a case contains the one layout that its source prints") {
  const auto cases = cases_named({"vshape-98b-s1024-v-half", "vshape-98b-s1024-1f1b-mapped"});
  REQUIRE(cases.size() == 2);
  CHECK(is_grid_search(cases[0]));
  CHECK_FALSE(is_grid_search(cases[1]));
  int printed = 0;
  const std::vector<Case> layouts = grid_layouts(cases[0]);
  for (const Case& c : layouts) {
    CHECK(*c.parallel.tp * *c.parallel.pp * *c.parallel.dp == c.gpus);
    printed += *c.parallel.tp == 4 && *c.parallel.pp == 5 && *c.parallel.dp == 2 && *c.mbs == 2;
    const CaseScenario mapped = case_scenario(c);
    if (mapped.scenario) CHECK(mapped.scenario->parallel.vpp == 2);
  }
  CHECK(printed == 1);
}
