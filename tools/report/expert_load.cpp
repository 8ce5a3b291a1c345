#include "tools/report/expert_load.h"

#include <fmt/format.h>

#include <algorithm>

namespace k3sim {

namespace {

constexpr std::size_t kLayers = 4;
constexpr int kMicrobatches = 4;

double most(const std::vector<double>& v) {
  return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
}

PageHeat grid(const std::vector<ExpertLoadDraw>& draws, const char* id, const std::string& caption, const char* unit,
              const std::vector<double> ExpertLoadDraw::*values) {
  PageHeat h{
      id, caption, "prediction; routing of the scenario", unit, "layer and micro-batch", "expert-parallel rank", {},
      {}, {}};
  for (const ExpertLoadDraw& d : draws) {
    h.rows.push_back(fmt::format("{}, {}", d.layer, d.microbatch));
    h.values.push_back(d.*values);
  }
  for (std::size_t r = 0; r < h.values.front().size(); ++r) h.columns.push_back(fmt::format("{}", r));
  return h;
}

PageTable load_table(const std::vector<ExpertLoadDraw>& draws) {
  PageTable t{"expert_load",
              "The drawn layers and micro-batches",
              "prediction; routing of the scenario",
              {{"layer", "draw of layer", "1", "layers with the same experts are draws of one law"},
               {"microbatch", "micro-batch", "1", ""},
               {"violation", "most loaded expert", "x", "over the mean, minus one"},
               {"arriving", "fullest rank, arriving", "x", "tokens of its own experts over the mean rank"},
               {"computed", "fullest rank, computed", "x", "padded rows over those of balanced routing"},
               {"replicas_most", "most replicas", "1", "expert copies that one rank receives"},
               {"replicas_all", "all replicas", "1", "copies sent in the group"}},
              {}};
  for (const ExpertLoadDraw& d : draws) {
    double sum = 0;
    for (const double v : d.replicas) sum += v;
    t.rows.push_back({fmt::format("{}", d.layer), fmt::format("{}", d.microbatch), csv_number(d.violation),
                      csv_number(most(d.arriving)), csv_number(most(d.computed)), csv_number(most(d.replicas)),
                      csv_number(sum)});
  }
  return t;
}

}  // namespace

std::vector<ExpertLoadDraw> expert_load(const MoeEffects& effects) {
  std::vector<ExpertLoadDraw> out;
  if (!effects.draws) return out;
  const MoeDraws& draws = *effects.draws;
  for (std::size_t l = 0; l < std::min(kLayers, draws.layers().size()); ++l)
    for (int m = 0; m < std::min(kMicrobatches, draws.micro_batches()); ++m) {
      const int layer = draws.layers()[l];
      const MoeDraw& draw = draws.at(layer, m);
      ExpertLoadDraw d{layer, m, draw.max_violation, {}, {}, {}};
      const std::size_t ranks = draw.ranks.size(), own = draw.expert_rows.size() / ranks;
      double all = 0;
      for (const std::int64_t rows : draw.expert_rows) all += static_cast<double>(rows);
      for (std::size_t r = 0; r < ranks; ++r) {
        double rows = 0;
        for (std::size_t e = r * own; e < (r + 1) * own; ++e) rows += static_cast<double>(draw.expert_rows[e]);
        d.arriving.push_back(rows * static_cast<double>(ranks) / all);
        d.computed.push_back(draw.ranks[r].row_ratio);
        d.replicas.push_back(draw.ranks[r].replicas_received);
      }
      out.push_back(std::move(d));
    }
  return out;
}

std::optional<ExpertLoadSection> expert_load_section(const StepPrediction& p) {
  const std::vector<ExpertLoadDraw> draws = expert_load(p.moe);
  if (draws.empty()) return {};
  ExpertLoadSection s;
  double largest = 1, least = 1, replicas = 0;
  for (const ExpertLoadDraw& d : draws) {
    largest = std::max({largest, most(d.arriving), most(d.computed)});
    least = std::min(least, *std::min_element(d.arriving.begin(), d.arriving.end()));
    replicas = std::max(replicas, most(d.replicas));
  }
  s.grids.push_back(grid(draws, "arriving", "Rows that routing sends to the experts of every rank, over the mean", "x",
                         &ExpertLoadDraw::arriving));
  s.grids.push_back(grid(draws, "computed",
                         fmt::format("Rows that the ranks compute with dispatcher '{}', over balanced routing",
                                     p.plan->scenario.moe.dispatcher),
                         "x", &ExpertLoadDraw::computed));
  s.grids[0].most = s.grids[1].most = largest;  // the same colours in both
  s.grids[0].least = s.grids[1].least = least;
  if (replicas > 0)
    s.grids.push_back(
        grid(draws, "replicas", "Expert replicas that every rank receives", "experts", &ExpertLoadDraw::replicas));
  s.table = load_table(draws);
  return s;
}

}  // namespace k3sim
