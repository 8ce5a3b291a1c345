// See interval_tables.h. Source: there.
#include "tools/commands/interval_tables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/commands/text_table.h"

namespace k3sim {

std::string interval_text(const std::vector<IntervalCoverage>& intervals) {
  TextTable t({"measured / predicted", "n", "80 % within", "covers %", "95 % within", "covers %", "unseen sources %"});
  for (const IntervalCoverage& i : intervals)
    t.add({i.kind, fmt::format("{}", i.bounds.runs), fmt::format("{:.3f} .. {:.3f}", i.bounds.low80, i.bounds.high80),
           fmt::format("{:.1f}", i.covers80_pct), fmt::format("{:.3f} .. {:.3f}", i.bounds.low95, i.bounds.high95),
           fmt::format("{:.1f}", i.covers95_pct),
           fmt::format("{:.1f}, {:.1f}", i.source_covers80_pct, i.source_covers95_pct)});
  return "intervals (tiers A and B): bounds from all held-out families, coverage on the fold left out\n" + t.to_text();
}

CsvTable interval_table(const std::vector<IntervalCoverage>& intervals) {
  const char* both = "prediction and publication";
  CsvTable t({{"kind", "text", "dense or MoE models, tiers A and B", "publication"},
              {"runs", "1", "number of runs", "publication"},
              {"low95", "1", "2.5th percentile of measured over predicted, held-out families", both},
              {"low80", "1", "10th percentile of it", both},
              {"high80", "1", "90th percentile of it", both},
              {"high95", "1", "97.5th percentile of it", both},
              {"covers80_pct", "%", "runs within the 80 % interval of the other folds", both},
              {"covers95_pct", "%", "runs within the 95 % interval of the other folds", both},
              {"source_covers80_pct", "%", "the same, predicted without the run's source", both},
              {"source_covers95_pct", "%", "the same, predicted without the run's source", both}});
  for (const IntervalCoverage& i : intervals)
    t.add({i.kind, fmt::format("{}", i.bounds.runs), csv_number(i.bounds.low95), csv_number(i.bounds.low80),
           csv_number(i.bounds.high80), csv_number(i.bounds.high95), csv_number(i.covers80_pct),
           csv_number(i.covers95_pct), csv_number(i.source_covers80_pct), csv_number(i.source_covers95_pct)});
  return t;
}

nlohmann::ordered_json interval_json(const std::vector<IntervalCoverage>& intervals) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const IntervalCoverage& i : intervals)
    out.push_back({{"kind", i.kind},
                   {"runs", i.bounds.runs},
                   {"low95", i.bounds.low95},
                   {"low80", i.bounds.low80},
                   {"high80", i.bounds.high80},
                   {"high95", i.bounds.high95},
                   {"covers80_pct", i.covers80_pct},
                   {"covers95_pct", i.covers95_pct},
                   {"source_covers80_pct", i.source_covers80_pct},
                   {"source_covers95_pct", i.source_covers95_pct}});
  return out;
}

}  // namespace k3sim
