#include "tools/report/network_heat.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/step_view.h"

namespace k3sim {

namespace {

// Adds `bytes` over [from, to), both in bins.
void spread(std::vector<double>& bins, double from, double to, double bytes) {
  const double density = bytes / (to - from);
  for (auto b = static_cast<std::size_t>(from); b < bins.size() && static_cast<double>(b) < to; ++b) {
    const double low = std::max(from, static_cast<double>(b)), high = std::min(to, static_cast<double>(b + 1));
    bins[b] += density * std::max(0.0, high - low);
  }
}

PageHeat grid(const char* id, const std::string& caption, const std::vector<std::vector<double>>& bytes, double bin_s) {
  PageHeat h{
      id, caption, "prediction; rate from the hardware profile", "GB/s", "pipeline rank", "seconds into the step", {},
      {}, {}};
  for (std::size_t r = 0; r < bytes.size(); ++r) {
    h.rows.push_back(fmt::format("{}", r));
    std::vector<double> row;
    for (const double b : bytes[r]) row.push_back(b / bin_s / kGB);
    h.values.push_back(std::move(row));
  }
  for (int b = 0; b < kHeatBins; ++b) h.columns.push_back(fmt::format("{:.3g}", (b + 0.5) * bin_s));
  return h;
}

bool any(const std::vector<std::vector<double>>& bytes) {
  for (const auto& row : bytes)
    for (const double b : row)
      if (b > 0) return true;
  return false;
}

}  // namespace

LinkHeat link_heat(const StepPrediction& p) {
  const StepGraph& graph = *p.graph;
  const TaskGraph& g = graph.built.graph;
  const std::vector<double> none(kHeatBins, 0.0);
  LinkHeat out{std::vector(graph.compute_stream.size(), none), std::vector(graph.compute_stream.size(), none)};
  const double bin = p.times->makespan.seconds() / kHeatBins;
  for (std::uint32_t s = 0; s < g.stream_count(); ++s)
    for (std::size_t r = 0; r < graph.compute_stream.size(); ++r) {
      if (g.info(StreamId(s)).rank != g.info(graph.compute_stream[r].front()).rank) continue;
      for (const TaskId t : g.stream_tasks(StreamId(s))) {
        const TimedItem* item = task_item(graph, t);
        if (item == nullptr || !item->is_comm || p.times->start[t.value] == p.times->finish[t.value]) continue;
        const double from = p.times->start[t.value].seconds() / bin, to = p.times->finish[t.value].seconds() / bin;
        spread(out.nvlink[r], from, to, item->nvlink.as_double());
        spread(out.nic[r], from, to, item->network.as_double());
      }
    }
  return out;
}

std::vector<PageHeat> network_heat(const StepPrediction& p, const Machine& machine) {
  const LinkHeat heat = link_heat(p);
  const double bin = p.times->makespan.seconds() / kHeatBins;
  std::vector<PageHeat> out;
  const double nvlink = machine.comm.nvlink_rate / kGB, nic = machine.comm.scale_out.nic_payload.value() / kGB;
  if (any(heat.nvlink))
    out.push_back(grid("nvlink", fmt::format("What one GPU sends over NVLink; {:.0f} GB/s is the link's rate", nvlink),
                       heat.nvlink, bin));
  if (any(heat.nic))
    out.push_back(grid("nic",
                       fmt::format("What one GPU sends through its NIC; {:.0f} GB/s is what long messages reach", nic),
                       heat.nic, bin));
  return out;
}

}  // namespace k3sim
