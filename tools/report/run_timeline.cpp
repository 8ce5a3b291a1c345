#include "tools/report/run_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "sim/trace/chrome_json.h"
#include "tools/report/summary_json.h"

namespace k3sim {

namespace {

constexpr std::int64_t kTick = 100'000;  // picoseconds
constexpr std::size_t kMaxStreamBars = 60'000;
constexpr std::size_t kMaxKernels = 16'000;

std::int64_t ticks(Time t) {
  return t.picoseconds() / kTick;
}

// Names as numbers, in order of first use.
class Names {
 public:
  std::size_t operator()(const std::string& name) {
    const auto [it, fresh] = ids_.try_emplace(name, list_.size());
    if (fresh) list_.push_back(name);
    return it->second;
  }
  std::string json() const {
    std::string out = "[";
    for (const std::string& n : list_) out += (out.size() > 1 ? "," : "") + json_quoted(n);
    return out + ']';
  }

 private:
  std::map<std::string, std::size_t> ids_;
  std::vector<std::string> list_;
};

class Numbers {
 public:
  template <class... Values>
  void add(Values... values) {
    (one(static_cast<std::int64_t>(values)), ...);
  }
  // Start as distance from the end of the bar before, then the length.
  void bar(Time start, Time finish) {
    add(ticks(start) - cursor_, ticks(finish) - ticks(start));
    cursor_ = ticks(finish);
  }
  std::string json() const { return '[' + text_ + ']'; }

 private:
  void one(std::int64_t v) { fmt::format_to(std::back_inserter(text_), "{}{}", text_.empty() ? "" : ",", v); }
  std::string text_;
  std::int64_t cursor_ = 0;
};

std::string bars_json(const StepPrediction& p, const RankView& view, Names& kinds) {
  Numbers bars, idle;
  for (const ActionBar& b : view.bars) {
    bars.bar(b.start, b.finish);
    const Action a = b.span < 0 ? Action() : p.graph->spans[static_cast<std::size_t>(b.span)].action;
    bars.add(kinds(bar_kind(p, b)), a.stage, a.microbatch);
    idle.add(b.idle.size());
    for (const auto& [cause, time] : b.idle) idle.add(cause, ticks(time));
  }
  return fmt::format("\"bars\":{},\"idle\":{}", bars.json(), idle.json());
}

std::string gaps_json(const RankView& view, Names& what) {
  Numbers gaps;
  for (const IdleGap& g : view.gaps) {
    gaps.bar(g.start, g.finish);
    gaps.add(g.cause, what(g.what));
  }
  return gaps.json();
}

// Per stream other than compute: one bar per action that used it, from its first to its last task, with the busy time.
std::string streams_json(const StepPrediction& p, int rank, Names& roles) {
  const TaskGraph& g = p.graph->built.graph;
  const RankId own = g.info(p.graph->compute_stream[static_cast<std::size_t>(rank)].front()).rank;
  std::vector<std::int32_t> span_of(g.task_count(), -1);
  for (std::size_t s = 0; s < p.graph->spans.size(); ++s)
    for (std::uint32_t t = p.graph->spans[s].first; t < p.graph->spans[s].end; ++t)
      span_of[t] = static_cast<std::int32_t>(s);
  std::string out;
  for (std::uint32_t s = 0; s < g.stream_count(); ++s) {
    const auto role = static_cast<StreamRole>(g.info(StreamId(s)).role);
    if (g.info(StreamId(s)).rank != own || role == StreamRole::compute || g.stream_tasks(StreamId(s)).empty()) continue;
    Numbers bars;
    Time start, finish, busy;
    std::int32_t span = -2;
    const auto flush = [&] {
      if (busy == Time()) return;
      bars.bar(start, finish);
      bars.add(ticks(busy));
    };
    for (const TaskId t : g.stream_tasks(StreamId(s))) {
      if (span_of[t.value] != span || span < 0) {
        flush();
        span = span_of[t.value];
        start = p.times->start[t.value];
        busy = Time();
      }
      finish = p.times->finish[t.value];
      busy += finish - p.times->start[t.value];
    }
    flush();
    out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", roles(to_string(role)), bars.json());
  }
  return '[' + out + ']';
}

}  // namespace

std::string timeline_json(const StepPrediction& p, const std::vector<RankView>& views) {
  Names kinds, what, roles;
  std::size_t bars = 0;
  for (const RankView& v : views) bars += v.bars.size();
  const bool streams = bars * 4 <= kMaxStreamBars;
  std::string ranks;
  for (std::size_t r = 0; r < views.size(); ++r)
    ranks += fmt::format("{}{{{},\"gaps\":{},\"streams\":{}}}", r == 0 ? "" : ",\n", bars_json(p, views[r], kinds),
                         gaps_json(views[r], what), streams ? streams_json(p, static_cast<int>(r), roles) : "[]");
  std::string causes = "[";
  for (const BreakdownPart& part : breakdown_parts())
    causes += fmt::format("{}[{},{}]", causes.size() > 1 ? "," : "", json_quoted(part.key), json_quoted(part.what));
  return fmt::format(
      "{{\"tick_s\":1e-7,\"step\":{},\"kinds\":{},\"causes\":{}],\"what\":{},\"roles\":{},\"ranks\":[{}]}}",
      ticks(p.times->makespan), kinds.json(), causes, what.json(), roles.json(), ranks);
}

namespace {

struct Alive {
  int stage = 0, count = 0, first = 0, last = 0;
  Bytes gpu, host;
};

// Which micro-batches' tensors are alive when the action at `peak` runs, by stage.
std::vector<Alive> alive_at(const StepPlan& plan, int rank, std::size_t peak) {
  std::map<int, std::vector<int>> live;
  const auto& actions = plan.schedule.actions[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i <= peak && i < actions.size(); ++i)
    for_each_part(actions[i], [&](const Action& a) {
      auto& list = live[a.stage];
      if (a.kind == ActionKind::kForward) list.push_back(a.microbatch);
      if (yields_weight_grad(a.kind) && is_plain_compute(a.kind) && i < peak) std::erase(list, a.microbatch);
    });
  std::vector<Alive> out;
  for (const auto& [stage, list] : live) {
    if (list.empty()) continue;
    Bytes gpu, host;
    for (const ChunkPart& part : plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(stage))].parts)
      gpu += part.timed->saved, host += part.timed->offloaded;
    const auto n = static_cast<std::int64_t>(list.size());
    out.push_back({stage, static_cast<int>(n), *std::min_element(list.begin(), list.end()),
                   *std::max_element(list.begin(), list.end()), gpu * n, host * n});
  }
  return out;
}

std::int64_t mebibytes(Bytes b) {
  return b.count() >> 20;
}

// By category what is allocated when a bar has ended (one number where it never changes), and the most at once while it
// ran; MiB, -1 for bars that are no action of the schedule.
std::string curve_json(const RankView& view, const std::vector<MemoryStep>& steps) {
  const auto at = [&](const ActionBar& b) { return &steps[static_cast<std::size_t>(b.action)]; };
  Numbers peaks;
  for (const ActionBar& b : view.bars) peaks.add(b.action < 0 ? -1 : mebibytes(at(b)->peak));
  std::string live;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    Numbers values;
    std::set<std::int64_t> seen;
    for (const ActionBar& b : view.bars) {
      const std::int64_t v = b.action < 0 ? -1 : mebibytes(at(b)->live[c]);
      values.add(v);
      if (v >= 0) seen.insert(v);
    }
    if (seen.empty() || (seen.size() == 1 && *seen.begin() == 0)) continue;
    live += fmt::format("{}{}:{}", live.empty() ? "" : ",", json_quoted(to_string(static_cast<MemoryCategory>(c))),
                        seen.size() == 1 ? std::to_string(*seen.begin()) : values.json());
  }
  return fmt::format("{{\"live\":{{{}}},\"peak\":{}}}", live, peaks.json());
}

std::string rank_memory_json(const StepPrediction& p, const RankView& view, int rank) {
  const RankMemory& m = p.memory[static_cast<std::size_t>(rank)];
  const std::vector<MemoryStep>& steps = p.memory_over_time[static_cast<std::size_t>(rank)];
  std::size_t peak = 0;
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i].peak > steps[peak].peak) peak = i;
  std::string alive, parts;
  for (const Alive& a : alive_at(*p.plan, rank, peak))
    alive += fmt::format("{}[{},{},{},{},{:.4g},{:.4g}]", alive.empty() ? "" : ",", a.stage, a.count, a.first, a.last,
                         a.gpu.gibibytes(), a.host.gibibytes());
  for (const MemoryPart& part : memory_parts(m))
    parts += fmt::format("{}{:.6g}", parts.empty() ? "" : ",", part.bytes.gibibytes());
  return fmt::format("{{\"rank\":{},\"parts\":[{}],\"peak\":{},\"short_by\":{:.6g},\"alive\":[{}],\"curve\":{}}}", rank,
                     parts, json_quoted(m.peak_action), m.short_by.gibibytes(), alive, curve_json(view, steps));
}

}  // namespace

std::string memory_curves_json(const StepPrediction& p, const std::vector<RankView>& views, const MemoryView* fullest) {
  std::string parts, ranks;
  for (const MemoryPart& part : memory_parts(p.memory.front()))
    parts += fmt::format("{}{{\"key\":{},\"what\":{},\"host\":{}}}", parts.empty() ? "" : ",", json_quoted(part.key),
                         json_quoted(part.what), part.host);
  for (std::size_t r = 0; r < views.size(); ++r)
    ranks += (r == 0 ? "" : ",\n") + rank_memory_json(p, views[r], static_cast<int>(r));
  const std::string log = fullest == nullptr ? "" : ",\"log\":" + memory_log_json(*fullest);
  return fmt::format("{{\"capacity\":{:.6g},\"worst\":{},\"parts\":[{}],\"ranks\":[{}]{}}}",
                     p.summary.capacity.gibibytes(), p.summary.worst_memory_rank, parts, ranks, log);
}

namespace {

// One action in the middle of the step per (rank, stage, kind): all its tasks on all streams.
std::string kernels_of(const StepPrediction& p, const ActionSpan& span, Time start, Names& names, Names& roles) {
  const TaskGraph& g = p.graph->built.graph;
  std::map<std::uint32_t, Numbers> streams;
  for (std::uint32_t t = span.first; t < span.end; ++t) {
    if (p.times->start[t] == p.times->finish[t]) continue;
    Numbers& n = streams[g.stream(TaskId(t)).value];
    const TaskLabel& label = p.graph->labels[g.tag(TaskId(t))];
    const auto kind = static_cast<StepTask>(g.kind(TaskId(t)));
    n.bar(Time::ps(p.times->start[t].picoseconds() - start.picoseconds()),
          Time::ps(p.times->finish[t].picoseconds() - start.picoseconds()));
    n.add(names(label.name[0] != 0 ? label.name : to_string(kind)), names(to_string(kind)));
  }
  std::string out;
  for (const auto& [stream, numbers] : streams)
    out += fmt::format("{}[{},{}]", out.empty() ? "" : ",",
                       roles(to_string(static_cast<StreamRole>(g.info(StreamId(stream)).role))), numbers.json());
  return '[' + out + ']';
}

}  // namespace

std::string kernels_json(const StepPrediction& p, const std::vector<RankView>& views) {
  Names names, roles, kinds;
  std::string out;
  std::size_t total = 0;
  for (std::size_t r = 0; r < views.size(); ++r) {
    std::map<std::pair<int, int>, std::vector<const ActionBar*>> by_kind;
    for (const ActionBar& b : views[r].bars) {
      if (b.span < 0) continue;
      const Action& a = p.graph->spans[static_cast<std::size_t>(b.span)].action;
      by_kind[{a.stage, static_cast<int>(a.kind)}].push_back(&b);
    }
    for (const auto& [key, bars] : by_kind) {
      const ActionBar& bar = *bars[bars.size() / 2];
      const ActionSpan& span = p.graph->spans[static_cast<std::size_t>(bar.span)];
      if (total + (span.end - span.first) > kMaxKernels) continue;
      total += span.end - span.first;
      out += fmt::format("{}{{\"rank\":{},\"stage\":{},\"kind\":{},\"microbatch\":{},\"length\":{},\"streams\":{}}}",
                         out.empty() ? "" : ",\n", r, key.first, json_quoted(bar_kind(p, bar)), span.action.microbatch,
                         ticks(bar.finish) - ticks(bar.start), kernels_of(p, span, bar.start, names, roles));
    }
  }
  return fmt::format("{{\"tick_s\":1e-7,\"names\":{},\"roles\":{},\"actions\":[{}]}}", names.json(), roles.json(), out);
}

}  // namespace k3sim
