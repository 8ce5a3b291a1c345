// Sums draws over micro-batches. Source: moe_tables.h.
#include "tools/report/moe_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/config/expert_width.h"

namespace k3sim {

using Json = nlohmann::ordered_json;

namespace {

double rounded(double v) {
  return v == 0 ? 0.0 : std::stod(fmt::format("{:.9g}", v));
}

// Extremes over draws that the means in MoeEffects do not hold.
struct Extremes {
  double violation = 0, ratio = 0;
  int received = 0, sent = 0;
};

Extremes extremes_of(const MoeEffects& e) {
  Extremes x{e.max_violation, e.row_ratio, static_cast<int>(e.replicas_max), 0};
  if (!e.draws) return x;
  for (const MoeDraw& d : e.draws->draws) {
    x.violation = std::max(x.violation, d.max_violation);
    x.ratio = std::max(x.ratio, d.largest_ratio());
    for (const EpRankLoad& r : d.ranks) {
      x.received = std::max(x.received, r.replicas_received);
      x.sent = std::max(x.sent, r.replicas_sent);
    }
  }
  return x;
}

// The draws of one layer.
std::vector<const MoeDraw*> draws_of(const MoeDraws& draws, std::size_t layer) {
  std::vector<const MoeDraw*> out;
  const auto n = static_cast<std::size_t>(draws.micro_batches());
  for (std::size_t m = 0; m < n; ++m) out.push_back(&draws.draws[layer * n + m]);
  return out;
}

}  // namespace

Json moe_summary(const Scenario& scenario, const StepPrediction& p) {
  const MoeEffects& e = p.moe;
  if (!e.present) return nullptr;
  const Extremes x = extremes_of(e);
  Json j;
  j["dispatcher"] = scenario.moe.dispatcher;
  j["values_per_token"] = values_sent_per_token(scenario.model);
  j["draws"] = e.draws ? e.draws->draws.size() : 0;
  j["drawn_layers"] = e.draws ? e.draws->layers().size() : 0;
  j["drawn_micro_batches"] = e.draws ? e.draws->micro_batches() : 0;
  j["max_violation"] = {{"mean", rounded(e.max_violation)}, {"max", rounded(x.violation)}};
  j["busiest_rank_rows"] = {{"mean", rounded(e.row_ratio)}, {"max", rounded(x.ratio)}};
  j["dispatch_ratio"] = rounded(e.dispatch_ratio);
  j["combine_ratio"] = rounded(e.combine_ratio);
  j["plan_s"] = rounded(e.plan.seconds());
  j["replicate_s"] = rounded(e.replicate.seconds());
  j["gradient_return_s"] = rounded(e.gradient_return.seconds());
  j["replicas_received"] = {{"mean", rounded(e.replicas_mean)}, {"max", x.received}};
  j["replicas_sent_max"] = x.sent;
  j["dropped_rows_max"] = e.dropped_rows;
  j["buffers_gib"] = rounded(e.buffers.gibibytes());
  j["pool_gib"] = rounded(e.pool.gibibytes());
  j["host_syncs_per_layer"] = e.host_syncs;
  j["sms"] = e.sms;
  j["dynamic_shapes"] = e.dynamic_shapes;
  j["router_statistics_bytes"] = p.router_statistics.count();
  j["router_statistics_s"] = rounded(p.router_statistics_time.seconds());
  return j;
}

CsvTable expert_ranks_table(const StepPrediction& p) {
  CsvTable out({{"layer", "1", "decoder layer, from 0"},
                {"ep_rank", "1", "rank in the expert-parallel group"},
                {"rows_mean", "1", "token rows that its experts compute in a micro-batch; mean over the drawn ones"},
                {"rows_max", "1", "the same, largest micro-batch"},
                {"row_ratio_mean", "1", "rows with padding over those of balanced routing"},
                {"row_ratio_max", "1", "the same, largest micro-batch"},
                {"replicas_received_mean", "1", "experts of other ranks that it computes"},
                {"replicas_sent_mean", "1", "copies of its own experts that it sends"},
                {"nvlink_sent_bytes", "byte", "dispatch, per micro-batch"},
                {"rdma_sent_bytes", "byte", "dispatch, per micro-batch"}});
  if (!p.moe.draws) return out;
  const MoeDraws& draws = *p.moe.draws;
  const double n = draws.micro_batches();
  for (std::size_t l = 0; l < draws.layers().size(); ++l)
    for (std::size_t r = 0; r < draws.draws.front().ranks.size(); ++r) {
      double rows = 0, ratio = 0, ratio_max = 0, received = 0, sent = 0, nvlink = 0, rdma = 0;
      std::int64_t rows_max = 0;
      for (const MoeDraw* d : draws_of(draws, l)) {
        const EpRankLoad& load = d->ranks[r];
        rows += static_cast<double>(load.rows) / n, ratio += load.row_ratio / n;
        rows_max = std::max(rows_max, load.rows), ratio_max = std::max(ratio_max, load.row_ratio);
        received += load.replicas_received / n, sent += load.replicas_sent / n;
        nvlink += load.nvlink_sent.as_double() / n, rdma += load.rdma_sent.as_double() / n;
      }
      out.add({std::to_string(draws.layers()[l]), std::to_string(r), csv_number(rows), std::to_string(rows_max),
               csv_number(ratio), csv_number(ratio_max), csv_number(received), csv_number(sent), csv_number(nvlink),
               csv_number(rdma)});
    }
  return out;
}

CsvTable expert_load_table(const StepPrediction& p, int ep) {
  CsvTable out({{"layer", "1", "decoder layer, from 0"},
                {"expert", "1", "routed expert"},
                {"owner", "1", "rank of the expert-parallel group that owns it"},
                {"tokens_mean", "1", "tokens that choose it in a micro-batch of the group; mean over the drawn ones"},
                {"tokens_max", "1", "the same, largest micro-batch"},
                {"load", "1", "tokens_mean over the mean of the layer's experts"}});
  if (!p.moe.draws) return out;
  const MoeDraws& draws = *p.moe.draws;
  const auto experts = draws.draws.front().expert_rows.size();
  const std::size_t per_rank = std::max<std::size_t>(1, experts / static_cast<std::size_t>(ep));
  for (std::size_t l = 0; l < draws.layers().size(); ++l) {
    std::vector<double> mean(experts, 0);
    std::vector<std::int64_t> most(experts, 0);
    double all = 0;
    for (const MoeDraw* d : draws_of(draws, l))
      for (std::size_t e = 0; e < experts; ++e) {
        mean[e] += static_cast<double>(d->expert_rows[e]) / draws.micro_batches();
        most[e] = std::max(most[e], d->expert_rows[e]);
        all += static_cast<double>(d->expert_rows[e]) / draws.micro_batches();
      }
    for (std::size_t e = 0; e < experts; ++e)
      out.add({std::to_string(draws.layers()[l]), std::to_string(e), std::to_string(e / per_rank), csv_number(mean[e]),
               std::to_string(most[e]), csv_number(mean[e] * static_cast<double>(experts) / all)});
  }
  return out;
}

}  // namespace k3sim
