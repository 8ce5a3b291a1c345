// What the network did during the step, for summary.json (key `network`), network.csv and the text.
//   mode              flows | closed_form
//   unfolding         none | ranks | flows (models/build/step_network.h), unfold_reason in words
//   lost_s            seconds that a rank's communications took beyond their calibrated time, by kind; not all exposed
//   classes           per kind of link: links, links_used, bytes (of all links), peak_utilisation of the fullest link,
//                     mean_utilisation of the used ones over the step
//   hottest           links by mean utilisation; `alike` links carry exactly the same load
// Source: engine-design section 18 (network: hottest links, contention slow-downs).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/build/step.h"
#include "tools/report/csv.h"

namespace k3sim {

nlohmann::ordered_json network_json(const StepNetworkReport& network);
// One row per class (scope "class"), hottest link ("link") and kind of communication ("communication").
CsvTable network_table_csv(const StepNetworkReport& network);
// What was simulated rank by rank and why; empty when nothing had to be.
std::string unfolding_text(const StepNetworkReport& network);
// One or two lines.
std::string network_text(const StepNetworkReport& network, double step_s);

}  // namespace k3sim
