#include "tools/report/step_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "tools/report/summary_json.h"

namespace k3sim {

namespace {

int part_index(Time RankBreakdown::*field) {
  const auto& parts = breakdown_parts();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].field == field) return static_cast<int>(i);
  CS_CHECK(false, "a part of the breakdown without a name");
}

class Viewer {
 public:
  explicit Viewer(const StepPrediction& p)
      : plan_(*p.plan), graph_(*p.graph), g_(graph_.built.graph), times_(*p.times) {
    break_down(graph_, times_, &pieces_);
  }

  std::vector<RankView> views() {
    span_of_task_.assign(g_.task_count(), -1);
    for (std::size_t s = 0; s < graph_.spans.size(); ++s)
      for (std::uint32_t t = graph_.spans[s].first; t < graph_.spans[s].end; ++t)
        span_of_task_[t] = static_cast<int>(s);
    std::vector<RankView> out(graph_.compute_stream.size());
    for (std::size_t r = 0; r < out.size(); ++r) bars(out[r], static_cast<int>(r));
    for (const IdlePiece& piece : pieces_) place(out[static_cast<std::size_t>(piece.rank)], piece);
    for (RankView& v : out) std::stable_sort(v.gaps.begin(), v.gaps.end(), earlier);
    for (RankView& v : out) merge(v.gaps);
    return out;
  }

 private:
  static bool earlier(const IdleGap& a, const IdleGap& b) { return a.start < b.start; }

  void bars(RankView& view, int rank) {
    const auto& actions = plan_.schedule.actions[static_cast<std::size_t>(rank)];
    int next = 0;
    for (TaskId t : g_.stream_tasks(graph_.compute_stream[static_cast<std::size_t>(rank)].front())) {
      const int span = span_of_task_[t.value];
      const Time start = times_.start[t.value], finish = times_.finish[t.value];
      if (span >= 0 && !view.bars.empty() && view.bars.back().span == span) {
        view.bars.back().finish = finish;
        continue;
      }
      if (span < 0 && start == finish) continue;
      ActionBar bar{start, finish, span, -1, static_cast<StepTask>(g_.kind(t)), {}};
      if (span >= 0) {
        const Action& a = graph_.spans[static_cast<std::size_t>(span)].action;
        while (next < static_cast<int>(actions.size()) && !(actions[static_cast<std::size_t>(next)] == a)) ++next;
        bar.action = next < static_cast<int>(actions.size()) ? next++ : -1;
      }
      view.bars.push_back(std::move(bar));
    }
  }

  void place(RankView& view, const IdlePiece& piece) {
    const auto after = std::upper_bound(view.bars.begin(), view.bars.end(), piece.from,
                                        [](Time t, const ActionBar& b) { return t < b.start; });
    const int cause = part_index(piece.cause);
    if (after != view.bars.begin() && std::prev(after)->finish >= piece.to) {
      auto& idle = std::prev(after)->idle;
      const auto found = std::find_if(idle.begin(), idle.end(), [&](const auto& i) { return i.first == cause; });
      if (found != idle.end())
        found->second += piece.to - piece.from;
      else
        idle.emplace_back(cause, piece.to - piece.from);
    } else {
      view.gaps.push_back({piece.from, piece.to, cause, describe(piece)});
    }
  }

  std::string describe(const IdlePiece& piece) const {
    if (!piece.task.valid()) return "no predecessor was running";
    const TaskLabel& label = graph_.labels[g_.tag(piece.task)];
    const int span = span_of_task_[piece.task.value];
    if (span < 0) return label.name;
    const ActionSpan& s = graph_.spans[static_cast<std::size_t>(span)];
    return fmt::format("{} on rank {}", to_string(s.action), s.rank);
  }

  static void merge(std::vector<IdleGap>& gaps) {
    std::vector<IdleGap> out;
    for (IdleGap& g : gaps) {
      if (!out.empty() && out.back().finish == g.start && out.back().cause == g.cause && out.back().what == g.what)
        out.back().finish = g.finish;
      else
        out.push_back(std::move(g));
    }
    gaps = std::move(out);
  }

  const StepPlan& plan_;
  const StepGraph& graph_;
  const TaskGraph& g_;
  const TaskTimes& times_;
  std::vector<IdlePiece> pieces_;
  std::vector<int> span_of_task_;
};

const char* short_kind(ActionKind k) {
  switch (k) {
    case ActionKind::kForward:
      return "F";
    case ActionKind::kInputGrad:
      return "I";
    case ActionKind::kWeightGrad:
      return "W";
    case ActionKind::kBackward:
      return "B";
    case ActionKind::kOverlap:
      return "FB";
    default:
      return kind_text(k);
  }
}

}  // namespace

std::vector<RankView> step_view(const StepPrediction& prediction) {
  CS_CHECK(prediction.plan && prediction.graph && prediction.times, "the prediction was made without keep_graph");
  return Viewer(prediction).views();
}

std::string bar_kind(const StepPrediction& prediction, const ActionBar& bar) {
  if (bar.span < 0) return to_string(bar.kind);
  return short_kind(prediction.graph->spans[static_cast<std::size_t>(bar.span)].action.kind);
}

const TimedItem* task_item(const StepGraph& graph, TaskId task) {
  const std::uint32_t tag = graph.built.graph.tag(task);
  const TaskLabel& label = graph.labels[tag];
  if (label.pass == nullptr) return nullptr;
  const auto same = [&](const TaskLabel& l) {
    return l.pass == label.pass && l.chunk == label.chunk && l.part == label.part;
  };
  std::uint32_t first = tag;
  while (first > 0 && same(graph.labels[first - 1])) --first;
  const std::size_t item = tag - first;
  return item < label.pass->items.size() ? &label.pass->items[item] : nullptr;
}

const char* to_string(StreamRole role) {
  constexpr const char* kNames[] = {"compute",
                                    "side",
                                    "tp communication",
                                    "cp communication",
                                    "ep communication",
                                    "send forward",
                                    "send backward",
                                    "parameter gather",
                                    "gradient reduction",
                                    "host launches",
                                    "offload",
                                    "onload",
                                    "global"};
  return kNames[static_cast<std::size_t>(role)];
}

}  // namespace k3sim
