#include "tools/planner/fit_frontier.h"

#include <fmt/format.h>

namespace k3sim {

std::vector<FrontierPoint> fit_frontier(const SearchSpace& space, MachineStore& machines, const FitOptions& options) {
  FitOptions quick = options;
  quick.knobs = false;
  std::vector<FrontierPoint> out;
  for (std::int64_t factor : {1, 4, 16})
    for (std::int64_t micro_batch : {1, 2}) {
      const std::int64_t sequence = space.base().batch.sequence * factor;
      const SearchSpace longer =
          space.with({fmt::format("batch.sequence={}", sequence), fmt::format("batch.micro_batch={}", micro_batch),
                      fmt::format("batch.global_tokens={}", sequence * micro_batch)});
      for (const FitAnswer& a : smallest_fit(longer, machines, quick))
        out.push_back({a.gpu, sequence, micro_batch, a.nodes, a.layout, a.binding});
    }
  return out;
}

std::string fit_frontier_csv(const std::vector<FrontierPoint>& points) {
  std::string out = csv_line({"gpu", "sequence", "micro_batch", "nodes", "binding", "layout"});
  for (const FrontierPoint& p : points)
    out += csv_line({p.gpu, fmt::format("{}", p.sequence), fmt::format("{}", p.micro_batch),
                     p.nodes > 0 ? fmt::format("{}", p.nodes) : "", p.binding, p.layout});
  return out;
}

}  // namespace k3sim
