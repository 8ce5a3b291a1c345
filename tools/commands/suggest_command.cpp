// k3sim calibrate --suggest SCENARIO: what to measure next; needs no GPU. Source: product-spec section 2.
#include "tools/commands/suggest_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "models/build/machine_loader.h"
#include "models/config/scenario_loader.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"
#include "tools/planner/measure_next.h"

namespace k3sim {

int suggest_measurements(const std::string& path, const std::vector<std::string>& overrides, CommandContext& context) {
  const Scenario scenario = load_scenario(path, overrides);
  const MeasurementPlan plan = measure_next(scenario, load_machine(scenario), true);
  if (context.json) {
    nlohmann::ordered_json j{{"error_bar_pct", plan.bar_pct}, {"error_bar_after_pct", plan.after_pct}};
    j["measure"] = nlohmann::ordered_json::array();
    for (const MeasureNext& m : plan.list)
      j["measure"].push_back({{"what", m.what},
                              {"shape", m.shape},
                              {"kind", m.collective ? "collective" : "kernel"},
                              {"provenance", to_string(m.provenance)},
                              {"share_pct", m.share_pct},
                              {"error_pct", m.error_pct},
                              {"narrows_pct", m.narrows_pct}});
    context.out << j.dump(2) << "\n";
    return 0;
  }
  TextTable t({"#", "measure", "shape", "known from", "share of step %", "error %", "narrows by %"});
  for (std::size_t i = 0; i < plan.list.size(); ++i) {
    const MeasureNext& m = plan.list[i];
    t.add({fmt::format("{}", i + 1), m.what, m.shape, to_string(m.provenance), fmt::format("{:.2f}", m.share_pct),
           fmt::format("{:.0f}", m.error_pct), fmt::format("{:.3f}", m.narrows_pct)});
  }
  context.out << fmt::format("step of {} on {}: error bar {:.2f} %, {:.2f} % when these {} were measured\n",
                             scenario.model.name, scenario.cluster.gpu, plan.bar_pct, plan.after_pct, plan.list.size())
              << t.to_text(context.colour());
  return 0;
}

}  // namespace k3sim
