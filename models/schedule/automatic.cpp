// The automatic schedule: the shortest order found for given F, I, W and transfer times and a limit on activations.
//
// Candidates for the order of forwards and input gradients are tried in turn, each with the weight gradients filled in
// for a range of bubble budgets (weight_filler.h):
//   one chunk : warm-up of min(limit, 1 + slope (p - 1 - r)) forwards, then one I and one F in turn, for slopes from 1
//               (1F1B's warm-up) upwards; then single warm-ups one up or down; list scheduling for uneven stages
//   two chunks: the ZB-V, V-Half and V-Min orders as far as they fit, and list scheduling
//   more      : list scheduling on waves
// The goal is the published one: the longest rank (end - start), then the makespan.
// Cost: each try is linear; 32 ranks x 256 micro-batches take about a second. The number of placed actions is capped,
// so larger schedules get fewer tries instead of more time. Source: arXiv 2401.10241 section 3 and appendix (heuristic
// with memory limit); the candidates and the search are ours.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/schedule/generators.h"
#include "models/schedule/list_scheduler.h"
#include "models/schedule/weight_filler.h"

namespace k3sim {

namespace {
constexpr int kCoarseBudgets = 8, kFineBudgets = 6;
constexpr double kMostVisits = 1.5e8;  // actions placed in all tries together: a few seconds

// F and I in turn behind warmup[r] forwards on rank r.
Schedule alternating_order(const ScheduleSpec& spec, const std::vector<int>& warmup) {
  Schedule s = looped_schedule(spec, 1);
  for (int rank = 0; rank < s.ranks; ++rank) {
    auto& row = s.actions[static_cast<std::size_t>(rank)];
    int forward = 0;
    while (forward < warmup[static_cast<std::size_t>(rank)])
      row.push_back(make_action(ActionKind::kForward, rank, forward++));
    for (int i = 0; i < s.microbatches; ++i) {
      row.push_back(make_action(ActionKind::kInputGrad, rank, i));
      if (forward < s.microbatches) row.push_back(make_action(ActionKind::kForward, rank, forward++));
    }
  }
  return s;
}

// Falls by `slope` forwards per rank.
std::vector<int> sloped_warmup(const ScheduleSpec& spec, double slope, int limit) {
  std::vector<int> warmup;
  for (int rank = 0; rank < spec.ranks; ++rank)
    warmup.push_back(
        std::min(std::min(spec.microbatches, limit), 1 + static_cast<int>(slope * (spec.ranks - 1 - rank) + 1e-9)));
  return warmup;
}

class Search {
 public:
  Search(std::vector<StageTimes> times, std::vector<int> limit) : times_(std::move(times)), limit_(std::move(limit)) {}

  // Budgets between none and all of the order's idle time without weight gradients, then finer around the best.
  // True if the best so far improved.
  bool consider(const Schedule& order) {
    const FillResult before{
        .feasible = best_.feasible, .schedule = {}, .bubble = best_.bubble, .makespan = best_.makespan};
    const FillResult eager = attempt(order, Time());
    if (!eager.feasible) return false;
    Time low, high = eager.bubble, best_budget, best_bubble = eager.bubble;
    for (int round = 0; round < 2; ++round) {
      const int steps = round == 0 ? kCoarseBudgets : kFineBudgets;
      const Time step = Time::ps((high - low).picoseconds() / steps);
      for (int i = 1; i <= steps; ++i) {
        const Time budget = low + step * i;
        const FillResult tried = attempt(order, budget);
        if (tried.bubble < best_bubble) best_bubble = tried.bubble, best_budget = budget;
      }
      low = std::max(Time(), best_budget - step);
      high = best_budget + step;
    }
    return better(best_, before);
  }

  const FillResult& best() const { return best_; }
  bool has_time() const { return visits_ < kMostVisits; }

 private:
  static bool better(const FillResult& a, const FillResult& b) {
    if (!a.feasible || !b.feasible) return a.feasible;
    return a.bubble != b.bubble ? a.bubble < b.bubble : a.makespan < b.makespan;
  }
  FillResult attempt(const Schedule& order, Time budget) {
    FillResult tried = fill_weight_grads(order, times_, limit_, budget);
    visits_ += 3.0 * order.stages * order.microbatches;
    if (better(tried, best_)) best_ = tried;
    return tried;
  }

  std::vector<StageTimes> times_;
  std::vector<int> limit_;
  FillResult best_;
  double visits_ = 0;
};

// The best constant slope, then single ranks' warm-ups one up or down while that helps.
void consider_warmups(const ScheduleSpec& spec, int limit, Search& search) {
  constexpr double kStep = 0.1, kMost = 4.0;
  constexpr int kRounds = 4;
  std::vector<int> best = sloped_warmup(spec, 1.0, limit);
  auto consider = [&](const std::vector<int>& warmup) {
    const bool improved = search.consider(alternating_order(spec, warmup));
    if (improved) best = warmup;
    return improved;
  };
  const double steepest = spec.ranks > 1 ? static_cast<double>(limit - 1) / (spec.ranks - 1) : 1.0;
  consider(sloped_warmup(spec, steepest, limit));
  for (double slope = 1.0; slope < kMost; slope += kStep)
    if (search.has_time()) consider(sloped_warmup(spec, slope, limit));
  bool improved = true;
  for (int round = 0; round < kRounds && improved; ++round) {
    improved = false;
    for (std::size_t rank = 0; rank + 1 < best.size() && search.has_time(); ++rank)
      for (int change : {1, -1}) {
        std::vector<int> warmup = best;
        warmup[rank] += change;
        const bool falling = warmup[rank] >= warmup[rank + 1] && (rank == 0 || warmup[rank] <= warmup[rank - 1]);
        if (falling && warmup[rank] <= std::min(limit, spec.microbatches)) improved |= consider(warmup);
      }
  }
}

void consider_lists(const Schedule& skeleton, const std::vector<StageTimes>& times, const std::vector<int>& limit,
                    Search& search) {
  const ListInput input{.skeleton = skeleton, .times = times, .limit = limit};
  for (Prefer prefer : {Prefer::kBackward, Prefer::kForward})
    for (double patience : {0.0, 0.5, 1.0}) {
      const ListResult found = list_schedule(input, {.patience = patience, .prefer = prefer});
      search.consider(without_weight_grads(found.schedule));
    }
}

std::vector<StageTimes> stage_times(const ScheduleSpec& spec, int stages) {
  if (spec.times_per_stage.empty()) return std::vector<StageTimes>(static_cast<std::size_t>(stages), spec.times);
  if (static_cast<int>(spec.times_per_stage.size()) != stages)
    refuse_schedule(spec, "times_per_stage",
                    fmt::format("has {} stages but times for {}", stages, spec.times_per_stage.size()));
  return spec.times_per_stage;
}
}  // namespace

Schedule generate_automatic(const ScheduleSpec& spec) {
  const int v = spec.chunks, all = spec.microbatches * v;
  const Schedule skeleton = v == 1 ? looped_schedule(spec, 1) : folded_schedule(spec, v);
  const std::vector<StageTimes> times = stage_times(spec, skeleton.stages);
  const int limit = spec.memory_limit > 0 ? std::min(all, static_cast<int>(spec.memory_limit * v + 1e-9)) : all;
  if (limit < v)
    refuse_schedule(spec, "memory_limit",
                    fmt::format("needs room for at least one micro-batch, got {}", spec.memory_limit));
  const std::vector<int> limits(static_cast<std::size_t>(spec.ranks), limit);
  Search search(times, limits);
  if (v == 1) consider_warmups(spec, limit, search);
  if (v == 2)
    for (auto* generate : {generate_zb_v, generate_v_half, generate_v_min})
      search.consider(without_weight_grads(generate(spec)));
  consider_lists(skeleton, times, limits, search);
  Schedule out = search.best().schedule;
  out.name = spec.name;
  return out;
}

}  // namespace k3sim
