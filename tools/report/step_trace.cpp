#include "tools/report/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "sim/base/error.h"
#include "tools/report/step_view.h"

namespace k3sim {

namespace {

constexpr std::uint32_t kNoSlice = ~0u;

// One shown rank: which simulated rank stands for it.
struct ShownRank {
  int stage = 0, replica = 0;  // replica: index into StepGraph::replicas
  int lane = 0;                // global replica number: arrows join shown ranks of one lane
  std::string name;
};

class Tracer {
 public:
  Tracer(const StepPrediction& p, const StepTraceOptions& options)
      : p_(p), graph_(*p.graph), g_(graph_.built.graph), times_(*p.times), options_(options), views_(step_view(p)) {
    streams_of_.resize(graph_.compute_stream.size() * graph_.replicas.size());
    for (std::uint32_t s = 0; s < g_.stream_count(); ++s) {
      const RankId rank = g_.info(StreamId(s)).rank;
      if (!rank.valid()) continue;
      for (std::size_t r = 0; r < graph_.compute_stream.size(); ++r)
        for (std::size_t q = 0; q < graph_.compute_stream[r].size(); ++q)
          if (g_.info(graph_.compute_stream[r][q]).rank == rank)
            streams_of_[r * graph_.replicas.size() + q].push_back(StreamId(s));
    }
  }

  Trace run() {
    for (const ShownRank& r : shown()) add_rank(r);
    return std::move(trace_);
  }

 private:
  std::vector<ShownRank> shown() const {
    std::vector<ShownRank> out;
    const int per_stage = p_.plan->placement->replicas();
    if (options_.ranks.empty()) {
      for (std::size_t q = 0; q < graph_.replicas.size(); ++q)
        for (std::size_t r = 0; r < graph_.compute_stream.size(); ++r) {
          const int global = static_cast<int>(r) * per_stage + graph_.replicas[q];
          out.push_back({static_cast<int>(r), static_cast<int>(q), graph_.replicas[q],
                         fmt::format("stage {} (rank {})", r, global)});
        }
      return out;
    }
    for (const int global : options_.ranks) {
      const int stage = global / per_stage, replica = global % per_stage;
      const auto found = std::find(graph_.replicas.begin(), graph_.replicas.end(), replica);
      const int q = found == graph_.replicas.end() ? 0 : static_cast<int>(found - graph_.replicas.begin());
      const int stands_in = stage * per_stage + graph_.replicas[static_cast<std::size_t>(q)];
      std::string name = fmt::format("rank {} (stage {})", global, stage);
      if (stands_in != global) name += fmt::format(", like rank {}", stands_in);
      out.push_back({stage, q, replica, std::move(name)});
    }
    return out;
  }

  void add_rank(const ShownRank& rank) {
    const std::uint32_t process = trace_.add_process(rank.name);
    const auto at =
        static_cast<std::size_t>(rank.stage) * graph_.replicas.size() + static_cast<std::size_t>(rank.replica);
    slice_of_.assign(g_.task_count(), kNoSlice);
    if (rank.replica == 0) {
      add_actions(process, rank.stage);
      add_memory(process, rank.stage);
    }
    for (const StreamId s : streams_of_[at])
      if (options_.kernels || is_transfer_stream(s)) add_stream(process, s);
    if (options_.kernels) add_link_load(process, streams_of_[at]);
    remember_flows(rank.lane);
  }

  bool is_transfer_stream(StreamId s) const {
    const auto role = static_cast<StreamRole>(g_.info(s).role);
    return role == StreamRole::send_forward || role == StreamRole::send_backward;
  }

  void add_actions(std::uint32_t process, int stage) {
    const std::uint32_t thread = trace_.add_thread(process, "pipeline actions");
    for (const ActionBar& bar : views_[static_cast<std::size_t>(stage)].bars) {
      const std::string kind = bar_kind(p_, bar);
      const std::string name = bar.span < 0 ? kind : to_string(graph_.spans[static_cast<std::size_t>(bar.span)].action);
      if (!options_.kernels && bar.span >= 0) stand_in(graph_.spans[static_cast<std::size_t>(bar.span)]);
      trace_.slices.push_back({bar.start, bar.finish, thread, trace_.name(name), trace_.name(kind), 0});
    }
  }

  // Without kernels the action's slice is where arrows to its compute tasks end.
  void stand_in(const ActionSpan& span) {
    for (std::uint32_t t = span.first; t < span.end; ++t)
      if (static_cast<StreamRole>(g_.info(g_.stream(TaskId(t))).role) == StreamRole::compute)
        slice_of_[t] = static_cast<std::uint32_t>(trace_.slices.size());
  }

  void add_memory(std::uint32_t process, int stage) {
    const RankMemory& m = p_.memory[static_cast<std::size_t>(stage)];
    const std::uint32_t counter = trace_.add_counter(process, "memory", "GiB");
    const std::vector<MemoryStep>& steps = p_.memory_over_time[static_cast<std::size_t>(stage)];
    const Bytes base = m.reserved + m.outside - m.activations - m.transient;
    Bytes kept;
    const auto sample = [&](Time t, Bytes live) { trace_.samples.push_back({t, counter, (base + live).gibibytes()}); };
    sample(Time(), kept);
    for (const ActionBar& bar : views_[static_cast<std::size_t>(stage)].bars) {
      if (bar.action < 0) continue;
      const MemoryStep& s = steps[static_cast<std::size_t>(bar.action)];
      sample(bar.start, s.during);
      sample(bar.finish, kept = s.after);
    }
    sample(times_.makespan, Bytes());
  }

  void add_stream(std::uint32_t process, StreamId s) {
    if (g_.stream_tasks(s).empty()) return;
    const auto role = static_cast<StreamRole>(g_.info(s).role);
    const std::uint32_t thread = trace_.add_thread(process, to_string(role));
    for (TaskId t : g_.stream_tasks(s)) {
      if (times_.start[t.value] == times_.finish[t.value]) continue;
      const TaskLabel& label = graph_.labels[g_.tag(t)];
      slice_of_[t.value] = static_cast<std::uint32_t>(trace_.slices.size());
      const auto kind = static_cast<StepTask>(g_.kind(t));
      const TraceName where =
          label.chunk < 0 ? 0 : trace_.name(fmt::format("chunk {} part {}", label.chunk, label.part));
      trace_.slices.push_back({times_.start[t.value], times_.finish[t.value], thread,
                               trace_.name(label.name[0] != 0 ? label.name : to_string(kind)),
                               trace_.name(to_string(kind)), where});
    }
  }

  // Load in GB/s while a collective is on the wire: its bytes over its time.
  void add_link_load(std::uint32_t process, const std::vector<StreamId>& streams) {
    for (const bool nic : {true, false}) {
      std::vector<std::pair<Time, double>> changes;
      for (const StreamId s : streams)
        for (TaskId t : g_.stream_tasks(s)) {
          const TimedItem* item = task_item(graph_, t);
          const Time duration = times_.finish[t.value] - times_.start[t.value];
          if (item == nullptr || !item->is_comm || duration == Time()) continue;
          const double load = (nic ? item->network : item->nvlink).as_double() / duration.seconds() / kGB;
          if (load <= 0) continue;
          changes.emplace_back(times_.start[t.value], load);
          changes.emplace_back(times_.finish[t.value], -load);
        }
      write_load(process, nic ? "NIC load" : "NVLink load", changes);
    }
  }

  void write_load(std::uint32_t process, const char* name, std::vector<std::pair<Time, double>>& changes) {
    if (changes.empty()) return;
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::uint32_t counter = trace_.add_counter(process, name, "GB/s");
    trace_.samples.push_back({Time(), counter, 0});
    double load = 0;
    std::size_t active = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      load += changes[i].second;
      active += changes[i].second > 0 ? 1 : std::size_t(-1);
      if (active == 0) load = 0;  // no rest of the rounding when nothing is on the wire
      if (i + 1 == changes.size() || changes[i + 1].first > changes[i].first)
        trace_.samples.push_back({changes[i].first, counter, load});
    }
  }

  // Arrows from this rank's transfers; their targets may be shown later, so pairs are resolved over all shown ranks.
  void remember_flows(int lane) {
    for (std::uint32_t t = 0; t < g_.task_count(); ++t) {
      if (slice_of_[t] == kNoSlice) continue;
      if (const auto waiting = waiting_.find({lane, t}); waiting != waiting_.end())
        for (const std::uint32_t from : waiting->second) join(from, slice_of_[t]);
      else
        first_slice_.emplace(std::pair(lane, t), slice_of_[t]);
      if (static_cast<StepTask>(g_.kind(TaskId(t))) != StepTask::transfer) continue;
      for (const TaskId next : g_.successors(TaskId(t))) {
        if (g_.info(g_.stream(next)).rank == g_.info(g_.stream(TaskId(t))).rank) continue;
        if (const auto known = first_slice_.find({lane, next.value}); known != first_slice_.end())
          join(slice_of_[t], known->second);
        else
          waiting_[{lane, next.value}].push_back(slice_of_[t]);
      }
    }
  }

  // The second half of an overlapped pair may receive after its action has begun: an arrow back in time is left out.
  void join(std::uint32_t from, std::uint32_t to) {
    if (trace_.slices[from].start > trace_.slices[to].start) return;
    trace_.flows.push_back({from, to, trace_.name("pipeline transfer")});
  }

  const StepPrediction& p_;
  const StepGraph& graph_;
  const TaskGraph& g_;
  const TaskTimes& times_;
  const StepTraceOptions& options_;
  std::vector<RankView> views_;
  std::vector<std::vector<StreamId>> streams_of_;  // [stage * replicas + replica]
  std::vector<std::uint32_t> slice_of_;            // by task id, of the rank being added
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> first_slice_;
  std::map<std::pair<int, std::uint32_t>, std::vector<std::uint32_t>> waiting_;
  Trace trace_;
};

}  // namespace

Trace step_trace(const StepPrediction& prediction, const StepTraceOptions& options) {
  Trace t = Tracer(prediction, options).run();
  t.about["program"] = "k3sim " K3SIM_VERSION;
  t.about["model"] = prediction.plan->scenario.model.name;
  return t;
}

double expected_slices(const StepPrediction& p, const StepTraceOptions& options) {
  const double simulated = static_cast<double>(p.graph->compute_stream.size() * p.graph->replicas.size());
  const double shown = options.ranks.empty() ? simulated : static_cast<double>(options.ranks.size());
  return static_cast<double>(p.graph->built.graph.task_count()) / simulated * shown;
}

std::vector<int> parse_ranks(const std::string& text, int world) {
  std::set<int> out;
  if (text.empty() || text == "representatives") return {};
  const auto number = [&](std::string_view s) {
    int v = -1;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    if (error != std::errc() || end != s.data() + s.size() || v < 0 || v >= world)
      throw UsageError(fmt::format("--trace-ranks: '{}' is not a rank; there are ranks 0 to {}", s, world - 1));
    return v;
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = std::string_view(text).substr(at, comma - at);
    const std::size_t dash = item.find('-');
    const int first = item == "all" ? 0 : number(item.substr(0, dash));
    const int last = item == "all" ? world - 1 : dash == item.npos ? first : number(item.substr(dash + 1));
    if (last < first) throw UsageError(fmt::format("--trace-ranks: '{}' runs backwards", item));
    for (int r = first; r <= last; ++r) out.insert(r);
    at = comma + 1;
  }
  return {out.begin(), out.end()};
}

}  // namespace k3sim
