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

CsvTable fit_frontier_table(const std::vector<FrontierPoint>& points) {
  CsvTable out({{"gpu", "text", "GPU type", "scenario"},
                {"sequence_tokens", "tokens", "sequence length", "scenario"},
                {"micro_batch", "1", "sequences of a micro-batch", "scenario"},
                {"nodes", "1", "fewest nodes on which a layout of the space fits; empty: none does"},
                {"binding", "text", "largest term of memory on the fullest stage"},
                {"layout", "text", "the layout that fits", "search"}});
  for (const FrontierPoint& p : points)
    out.add({p.gpu, fmt::format("{}", p.sequence), fmt::format("{}", p.micro_batch),
             p.nodes > 0 ? fmt::format("{}", p.nodes) : "", p.binding, p.layout});
  return out;
}

}  // namespace k3sim
