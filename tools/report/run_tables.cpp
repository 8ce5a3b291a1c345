#include "tools/report/run_tables.h"

#include "tools/report/summary_json.h"

namespace k3sim {

CsvTable ranks_table(const StepPrediction& p) {
  std::vector<CsvColumn> columns{{"rank", "1", "pipeline rank; mean over its simulated replicas"}};
  for (const BreakdownPart& part : breakdown_parts()) columns.push_back({std::string(part.key) + "_s", "s", part.what});
  columns.push_back({"step_s", "s", "sum of the parts before: the step time"});
  columns.push_back({"allocated_bytes", "byte", "peak handed out by the framework's allocator"});
  columns.push_back({"reserved_bytes", "byte", "peak held by the process, context and communicators included"});
  columns.push_back({"short_by_bytes", "byte", "missing memory; 0 when the rank fits"});
  columns.push_back({"peak_action", "text", "action of the schedule at which memory peaks"});
  CsvTable out(std::move(columns));
  for (std::size_t i = 0; i < p.ranks.size(); ++i) {
    const RankBreakdown& b = p.ranks[i];
    const RankMemory& m = p.memory[i];
    std::vector<std::string> row{std::to_string(b.rank)};
    for (const BreakdownPart& part : breakdown_parts()) row.push_back(csv_number((b.*part.field).seconds()));
    row.push_back(csv_number(b.sum().seconds()));
    for (const Bytes v : {m.allocated, m.reserved + m.outside, m.short_by}) row.push_back(std::to_string(v.count()));
    row.push_back(m.peak_action);
    out.add(std::move(row));
  }
  return out;
}

CsvTable breakdown_table(const StepPrediction& p) {
  CsvTable out({{"rank", "1", "pipeline rank"},
                {"part", "text",
                 "where the time goes; meanings are those of the columns of ranks.csv. bubble/...: parts of the bubble "
                 "(warm_up, cool_down, imbalance, dependency), not to be added again; waiting for transfers is pp"},
                {"seconds", "s", "time of the step spent there"},
                {"share_pct", "%", "share of the step time"}});
  const auto add = [&](const RankBreakdown& b, const std::string& key, Time t) {
    const double s = t.seconds();
    out.add({std::to_string(b.rank), key, csv_number(s), csv_number(100.0 * s / p.summary.step.seconds())});
  };
  for (const RankBreakdown& b : p.ranks)
    for (const BreakdownPart& part : breakdown_parts()) {
      add(b, part.key, b.*part.field);
      if (part.field != &RankBreakdown::bubble) continue;
      for (const BubbleCause& cause : bubble_causes()) add(b, std::string("bubble/") + cause.key, b.why.*cause.field);
    }
  return out;
}

CsvTable memory_table(const StepPrediction& p) {
  CsvTable out({{"rank", "1", "pipeline rank"},
                {"where", "text", "gpu or host memory"},
                {"category", "text", "what the bytes are for, at the rank's peak"},
                {"bytes", "byte", "size"}});
  for (const RankMemory& m : p.memory)
    for (const MemoryPart& part : memory_parts(m))
      out.add({std::to_string(m.rank), part.host ? "host" : "gpu", part.key, std::to_string(part.bytes.count())});
  return out;
}

}  // namespace k3sim
