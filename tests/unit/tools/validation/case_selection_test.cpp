// Selecting validation cases by tier, type and words.
#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tools/validation/case_selection.h"

using namespace k3sim;

namespace {

Case made(const char* id, const char* tier, const char* model, std::int64_t experts) {
  Case c;
  c.id = id;
  c.tier = tier;
  c.group = "somewhere";
  c.model.name = model;
  c.model.experts = experts;
  return c;
}

}  // namespace

TEST_CASE("case selection: tier, type and words must all hold, one word is enough") {
  const std::vector<Case> cases{made("a", "A", "mixtral-8x7b", 8), made("b", "C", "mixtral-8x7b", 8),
                                made("c", "B", "llama", 0), made("fold-d", "B", "llama3-8x70b", 8)};
  const auto ids = [&](const CaseSelection& s) {
    std::string out;
    for (const Case& c : select_cases(cases, s)) out += c.id + " ";
    return out;
  };
  CHECK(ids({}) == "a b c fold-d ");
  CHECK(ids({.tiers = {"A", "B"}, .type = "moe", .words = {"mixtral", "fold"}}) == "a fold-d ");
  CHECK(ids({.tiers = {}, .type = "dense", .words = {}}) == "c ");
  CHECK(ids({.tiers = {}, .type = "", .words = {"somewhere"}}) == "a b c fold-d ");
  CHECK_THROWS_AS(select_cases(cases, {.tiers = {"A"}, .type = "dense", .words = {}}), ConfigError);
}
