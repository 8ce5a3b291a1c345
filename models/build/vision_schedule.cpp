// See vision_schedule.h. Source: k3-facts 2.8.
#include "models/build/vision_schedule.h"

#include <algorithm>
#include <map>

#include "sim/base/error.h"

namespace k3sim {

namespace {

using Rows = std::vector<std::vector<Action>>;

struct Gap {
  int rank = 0;
  std::size_t before = 0;  // position in the rank's row
  Time start, end;
};

class VisionPlacer {
 public:
  VisionPlacer(const Schedule& s, const std::vector<VisionLoad>& loads, const ScheduleCosts& costs)
      : s_(s), loads_(loads), placed_(place_actions(s, costs)), added_(s.actions.size()) {
    for (int rank = 0; rank < s.ranks; ++rank) own_stage_.push_back(s.stages_of_rank(rank).front());
    enters_.resize(loads.size());
    leaves_.resize(loads.size());
    for (std::size_t r = 0; r < s.actions.size(); ++r)
      for (std::size_t i = 0; i < s.actions[r].size(); ++i)
        for_each_part(s.actions[r][i], [&](const Action& a) {
          if (a.stage != 0 || !is_plain_compute(a.kind)) return;
          const auto m = static_cast<std::size_t>(a.microbatch);
          if (a.kind == ActionKind::kForward) enters_[m] = {placed_.ranks[r][i].start, i};
          if (yields_input_grad(a.kind)) leaves_[m] = {placed_.ranks[r][i].end, i};
        });
    first_rank_ = s.rank_of_stage.front();
  }

  void on_first_stage() {
    for (std::size_t m = 0; m < loads_.size(); ++m) {
      insert(first_rank_, enters_[m].index, ActionKind::kVisionForward, m);
      insert(first_rank_, leaves_[m].index + 1, ActionKind::kVisionBackward, m);
    }
  }

  void decoupled() {
    for (std::size_t m = 0; m < loads_.size(); ++m) {
      const int rank = static_cast<int>(m) % s_.ranks;
      insert(rank, 0, ActionKind::kVisionForward, m);
      insert(rank, row(rank).size(), ActionKind::kVisionBackward, m);
    }
  }

  void in_bubbles() {
    const std::vector<std::size_t> in = order(enters_), out = order(leaves_);
    const auto up_front = std::min(loads_.size(), static_cast<std::size_t>(s_.ranks));
    for (std::size_t i = 0; i < up_front; ++i) insert(static_cast<int>(i), 0, ActionKind::kVisionForward, in[i]);
    std::vector<Gap> gaps = idle_gaps();
    for (std::size_t i = up_front; i < in.size(); ++i) forward_in_gap(gaps, in[i]);
    gaps = idle_gaps();
    extra_.clear();
    // The last to leave take the latest room, so that early ones find theirs still free.
    for (std::size_t i = out.size() - up_front; i-- > 0;) backward_in_gap(gaps, out[i]);
    for (std::size_t i = 0; i < up_front; ++i) {
      // Mirror of the start: the last one to leave the pipeline stays on the first rank.
      const int rank = static_cast<int>(i);
      insert(rank, row(rank).size(), ActionKind::kVisionBackward, out[out.size() - 1 - i]);
    }
  }

  Schedule result() && {
    Schedule out = s_;
    for (std::size_t r = 0; r < out.actions.size(); ++r) {
      std::vector<Action> merged;
      auto next = added_[r].begin();
      for (std::size_t i = 0; i <= s_.actions[r].size(); ++i) {
        for (; next != added_[r].end() && next->first == i; ++next) merged.push_back(next->second);
        if (i < s_.actions[r].size()) merged.push_back(s_.actions[r][i]);
      }
      out.actions[r] = std::move(merged);
    }
    return out;
  }

 private:
  struct Moment {
    Time time;
    std::size_t index = 0;  // of the first stage's action in its row
  };
  const std::vector<Action>& row(int rank) const { return s_.actions[static_cast<std::size_t>(rank)]; }

  void insert(int rank, std::size_t before, ActionKind kind, std::size_t m) {
    added_[static_cast<std::size_t>(rank)].emplace(
        before, make_action(kind, own_stage_[static_cast<std::size_t>(rank)], static_cast<int>(m)));
  }

  // Micro-batches in the order in which they enter or leave the first stage.
  static std::vector<std::size_t> order(const std::vector<Moment>& moments) {
    std::vector<std::size_t> out(moments.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
    std::stable_sort(out.begin(), out.end(),
                     [&](std::size_t a, std::size_t b) { return moments[a].time < moments[b].time; });
    return out;
  }

  std::vector<Gap> idle_gaps() const {
    std::vector<Gap> gaps;
    Time makespan;
    for (const auto& r : placed_.ranks)
      for (const Interval& i : r) makespan = std::max(makespan, i.end);
    for (int rank = 0; rank < s_.ranks; ++rank) {
      Time free;
      const auto& intervals = placed_.ranks[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i <= intervals.size(); ++i) {
        const Time start = i < intervals.size() ? intervals[i].start : makespan;
        if (start > free) gaps.push_back({rank, i, free, start});
        if (i < intervals.size()) free = std::max(free, intervals[i].end);
      }
    }
    return gaps;
  }

  void forward_in_gap(std::vector<Gap>& gaps, std::size_t m) {
    const Time need = loads_[m].forward, deadline = enters_[m].time;
    Gap* best = nullptr;
    for (Gap& g : gaps)
      if (g.start + need <= std::min(g.end, deadline) && (best == nullptr || g.start < best->start)) best = &g;
    if (best == nullptr) return insert(least_extra(need), 0, ActionKind::kVisionForward, m);
    insert(best->rank, best->before, ActionKind::kVisionForward, m);
    best->start = best->start + need;
  }

  void backward_in_gap(std::vector<Gap>& gaps, std::size_t m) {
    const Time need = loads_[m].backward, ready = leaves_[m].time;
    Gap* best = nullptr;
    for (Gap& g : gaps)
      if (std::max(g.start, ready) + need <= g.end && (best == nullptr || g.end > best->end)) best = &g;
    if (best == nullptr) {
      const int rank = least_extra(need);
      return insert(rank, row(rank).size(), ActionKind::kVisionBackward, m);
    }
    insert(best->rank, best->before, ActionKind::kVisionBackward, m);
    best->end = best->end - need;
  }

  // No bubble is left: all ranks share the rest before the pipeline starts, or after it has run dry.
  int least_extra(Time need) {
    extra_.resize(placed_.ranks.size());
    const auto rank = static_cast<std::size_t>(std::min_element(extra_.begin(), extra_.end()) - extra_.begin());
    extra_[rank] += need;
    return static_cast<int>(rank);
  }

  const Schedule& s_;
  const std::vector<VisionLoad>& loads_;
  PlacedActions placed_;
  std::vector<std::multimap<std::size_t, Action>> added_;
  std::vector<int> own_stage_;
  std::vector<Moment> enters_, leaves_;
  std::vector<Time> extra_;
  int first_rank_ = 0;
};

}  // namespace

Schedule place_vision(const Schedule& s, const std::string& placement, const std::vector<VisionLoad>& loads,
                      const ScheduleCosts& costs) {
  if (s.chains != 1 || s.slices != 1)
    throw ConfigError("the vision encoder needs a schedule of one direction and whole sequences, not " + s.name,
                      "vision.placement");
  VisionPlacer placer(s, loads, costs);
  if (placement == "stage0") placer.on_first_stage();
  if (placement == "decoupled") placer.decoupled();
  if (placement == "bubbles") placer.in_bubbles();
  return std::move(placer).result();
}

ScheduleCosts stage_costs(const StepPlan& plan) {
  ScheduleCosts costs;
  for (int stage = 0; stage < plan.schedule.stages; ++stage) {
    const Chunk& c = plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))];
    StageTimes t{Time(), Time(), Time(), plan.comm->pipeline_hop(c.boundary).time};
    for (const ChunkPart& p : c.steps()) {
      const Time weight = p.timed->weight_grad.summary.elapsed;
      t.forward += p.timed->forward.summary.elapsed;
      t.weight_grad += weight;
      t.input_grad += p.timed->backward.summary.elapsed > weight ? p.timed->backward.summary.elapsed - weight : Time();
    }
    costs.stages.push_back(t);
  }
  return costs;
}

}  // namespace k3sim
