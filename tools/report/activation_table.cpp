#include "tools/report/activation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "models/build/overlap_report.h"

namespace k3sim {

namespace {

struct TensorRow {
  int rank = 0, stage = 0, layers = 0;
  std::string kind;
  KeptTreatment kept;
};

std::string kind_of(const StepPlan& plan, const ChunkPart& part) {
  if (part.kind == ChunkPart::Kind::mtp) return "mtp";
  return layer_kind_name(plan.scenario.model.layers[static_cast<std::size_t>(part.layer)]);
}

// Layers of one stage that were built alike, in model order of the first of each.
std::vector<std::pair<ChunkPart, int>> distinct_layers(const Chunk& chunk) {
  std::vector<std::pair<ChunkPart, int>> out;
  for (const ChunkPart& p : chunk.steps()) {
    if (p.kind != ChunkPart::Kind::layer && p.kind != ChunkPart::Kind::mtp) continue;
    const auto known = std::find_if(out.begin(), out.end(), [&](const auto& o) { return o.first.timed == p.timed; });
    known == out.end() ? out.emplace_back(p, 1) : (++known->second, *known);
  }
  return out;
}

std::vector<TensorRow> tensor_rows(const StepPlan& plan) {
  std::vector<TensorRow> out;
  for (int rank = 0; rank < plan.schedule.ranks; ++rank)
    for (const int stage : plan.schedule.stages_of_rank(rank))
      for (const auto& [part, layers] :
           distinct_layers(plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))])) {
        if (!part.timed->memory) continue;
        for (const KeptTreatment& k : part.timed->memory->kept)
          out.push_back({rank, stage, layers, kind_of(plan, part), k});
      }
  return out;
}

// 0-3, 5
std::string ranges(const std::vector<int>& sorted) {
  std::string out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    out += out.empty() ? "" : ", ";
    out += last > i ? fmt::format("{}-{}", sorted[i], sorted[last]) : fmt::format("{}", sorted[i]);
    i = last + 1;
  }
  return out;
}

PageTable choices_table(const StepPlan& plan) {
  PageTable t{
      "activation_choices",
      "What the search of every pipeline rank found",
      "prediction; search over sums, checked by the memory walk",
      {{"rank", "pipeline rank", "1", "searched on its own"},
       {"from", "started from", "", "the preset from which the best choice was reached", true},
       {"full", "full recompute", "", "only layer inputs are kept", true},
       {"added_ms", "added time", "ms", "per micro-batch, replays and copies that outlast their layer", false, true},
       {"gpu_gib", "activations at the peak", "GiB", "by the search's sums"},
       {"host_gib", "in host memory", "GiB", "per GPU"},
       {"remote_gib", "on another rank", "GiB", "per GPU"}},
      {}};
  for (std::size_t r = 0; r < plan.choices.size(); ++r) {
    const PolicyChoice& c = plan.choices[r];
    t.rows.push_back({std::to_string(r), c.from.empty() ? "the scenario's rules" : c.from, c.full ? "yes" : "no",
                      csv_number(1e3 * c.added_seconds), csv_number(c.peak.gibibytes()), csv_number(c.host.gibibytes()),
                      csv_number(c.remote.gibibytes())});
  }
  return t;
}

}  // namespace

CsvTable activation_table(const StepPrediction& p) {
  CsvTable out({{"rank", "1", "pipeline rank"},
                {"stage", "1", "stage of the schedule (model chunk)"},
                {"layer_kind", "text", "attention and feed-forward of the layer", "scenario"},
                {"layers", "1", "layers of that kind in the stage", "scenario"},
                {"tensor", "text", "what backward needs; the name that rules match"},
                {"bytes", "byte", "of one layer and micro-batch, before the treatment"},
                {"treatment", "text", "keep, recompute, fp8, offload, remote_offload or a combination"}});
  for (const TensorRow& r : tensor_rows(*p.plan))
    out.add({std::to_string(r.rank), std::to_string(r.stage), r.kind, std::to_string(r.layers), r.kept.name,
             std::to_string(r.kept.bytes.count()), to_string(r.kept.treatment)});
  return out;
}

namespace {

// Rows that agree in `key` and the stages that have them, in order of first appearance by kind of layer.
using Key = std::tuple<std::string, std::string, std::string, std::string>;  // kind, tensor, MiB, treatment
std::vector<std::pair<Key, std::string>> by_stages(const std::vector<TensorRow>& rows) {
  std::vector<Key> order;
  std::map<Key, std::vector<int>> stages;
  for (const TensorRow& r : rows) {
    if (r.kept.bytes == Bytes(0)) continue;
    Key key(r.kind, r.kept.name, csv_number(r.kept.bytes.as_double() / (1 << 20)), to_string(r.kept.treatment));
    std::vector<int>& list = stages[key];
    if (list.empty()) order.push_back(key);
    list.push_back(r.stage);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Key& a, const Key& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<std::pair<Key, std::string>> out;
  for (const Key& key : order) {
    std::vector<int>& list = stages[key];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    out.emplace_back(key, ranges(list));
  }
  return out;
}

// Tensors with one treatment in one row.
PageTable policy_summary(const std::string& policy, const std::vector<std::pair<Key, std::string>>& rows) {
  PageTable t{"activation_policy",
              fmt::format("What happens to the tensors between forward and backward; policy '{}'", policy),
              "prediction; policy: scenario",
              {{"layer_kind", "layer kind", "", "attention and feed-forward", true, false, "scenario"},
               {"treatment", "treatment", "", "between forward and backward", true},
               {"size_mib", "size", "MiB", "of one layer and micro-batch, before the treatment", false, true},
               {"stages", "on stages", "", "of the schedule", true},
               {"tensors", "tensors", "", "the names that rules of activation.tensors match", true}},
              {}};
  std::vector<double> sizes;
  for (const auto& [key, stages] : rows) {
    const auto& [kind, tensor, mib, treatment] = key;
    auto at = std::find_if(t.rows.begin(), t.rows.end(),
                           [&, &kind = kind, &treatment = treatment, &where = stages](const auto& r) {
                             return r[0] == kind && r[1] == treatment && r[3] == where;
                           });
    if (at == t.rows.end()) {
      t.rows.push_back({kind, treatment, "", stages, tensor});
      sizes.push_back(std::stod(mib));
      continue;
    }
    (*at)[4] += ", " + tensor;
    sizes[static_cast<std::size_t>(at - t.rows.begin())] += std::stod(mib);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) t.rows[i][2] = csv_number(sizes[i]);
  std::stable_sort(t.rows.begin(), t.rows.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  return t;
}

}  // namespace

std::vector<PageTable> activation_page_tables(const StepPrediction& p) {
  const auto rows = by_stages(tensor_rows(*p.plan));
  if (rows.empty()) return {};
  std::vector<PageTable> out{policy_summary(p.plan->scenario.activation.policy, rows)};
  if (!p.plan->choices.empty()) out.push_back(choices_table(*p.plan));
  PageTable t{"activation_tensors",
              "Every tensor that waits for backward",
              "prediction; policy: scenario",
              {{"layer_kind", "layer kind", "", "attention and feed-forward", true, false, "scenario"},
               {"tensor", "tensor", "", "the name that rules of activation.tensors match", true},
               {"size_mib", "size", "MiB", "of one layer and micro-batch, before the treatment"},
               {"treatment", "treatment", "", "between forward and backward", true},
               {"stages", "on stages", "", "of the schedule", true}},
              {}};
  t.folded = true;
  for (const auto& [key, stages] : rows)
    t.rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), stages});
  out.push_back(std::move(t));
  return out;
}

}  // namespace k3sim
