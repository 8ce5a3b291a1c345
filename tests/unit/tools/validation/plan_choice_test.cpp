// Kendall's tau and regret on orders that can be checked by hand.
#include <doctest/doctest.h>

#include "models/config/data_files.h"
#include "tools/validation/plan_choice.h"

using namespace k3sim;

TEST_CASE("kendall's tau: equal, opposite and one swapped pair of four") {
  CHECK(kendall_tau({1, 2, 3, 4}, {10, 20, 30, 40}) == doctest::Approx(1));
  CHECK(kendall_tau({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(kendall_tau({1, 2, 3, 4}, {1, 2, 4, 3}) == doctest::Approx(4.0 / 6));
  CHECK(kendall_tau({1, 1, 1}, {1, 2, 3}) == 0);
}

TEST_CASE("regret: how much slower the chosen layout is than the best one") {
  std::vector<Case> cases(4);
  std::vector<ValidationRow> rows(4);
  const double measured[] = {10, 11, 12, 13}, predicted[] = {10.5, 10.2, 12, 13};
  for (std::size_t i = 0; i < 4; ++i) {
    cases[i].id = rows[i].id = "c" + std::to_string(i);
    cases[i].mbs = static_cast<double>(i + 1);
    rows[i].kind = "model";
    rows[i].status = "predicted";
    rows[i].measured = measured[i];
    rows[i].predicted = predicted[i];
  }
  const PlanChoice c = plan_choice(cases, rows);
  CHECK(c.groups == 1);
  CHECK(c.mean_regret_pct == doctest::Approx(10));
  CHECK(c.mean_tau == doctest::Approx(4.0 / 6));
  CHECK(plan_choice(cases, rows, 5).groups == 0);
}

TEST_CASE("runs that repeat a layout are one layout with their mean time") {
  std::vector<Case> cases(4);
  std::vector<ValidationRow> rows(4);
  const double measured[] = {10, 14, 11, 13}, predicted[] = {10, 10, 11, 13};
  for (std::size_t i = 0; i < 4; ++i) {
    cases[i].id = rows[i].id = "c" + std::to_string(i);
    cases[i].parallel.tp = i < 2 ? 1 : static_cast<int>(i);  // the first two are the same layout, 12 s in the mean
    rows[i].kind = "model";
    rows[i].status = "predicted";
    rows[i].measured = measured[i];
    rows[i].predicted = predicted[i];
  }
  CHECK(plan_choice(cases, rows, 4).groups == 0);
  const PlanChoice c = plan_choice(cases, rows, 3);
  CHECK(c.layouts == 3);
  CHECK(c.mean_regret_pct == doctest::Approx(100.0 / 11));  // chosen 12 s, best 11 s
}

TEST_CASE("sharding within as many ranks as there are is sharding over all: one layout") {
  std::vector<Case> cases;
  for (const Case& c : load_cases(data_path("scenarios/validation/cases.yaml")))
    if (c.id == "internevo-7b-x8-tp2-zero-all" || c.id == "internevo-7b-x8-tp2-zero4" ||
        c.id == "internevo-7b-x64-tp2-zero-all" || c.id == "internevo-7b-x64-tp2-zero4")
      cases.push_back(c);
  REQUIRE(cases.size() == 4);
  std::vector<ValidationRow> rows(4);
  for (std::size_t i = 0; i < 4; ++i) {
    rows[i].id = cases[i].id;
    rows[i].kind = "model";
    rows[i].status = "predicted";
    rows[i].measured = rows[i].predicted = 1.0 + static_cast<double>(i);
  }
  const PlanChoice c = plan_choice(cases, rows, 1);  // 8 GPUs: 4 ranks, one layout; 64 GPUs: 32 ranks, two
  CHECK(c.groups == 2);
  CHECK(c.layouts == 3);
}
