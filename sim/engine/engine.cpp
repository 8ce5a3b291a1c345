// The event loop. State: how many dependencies each task still waits for, where each stream stands, and the running
// task of every stream in a StreamQueue. A completion releases tasks, released tasks start together in id order.
// Source: engine-design notes sections 1-4.
#include "sim/engine/engine.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"
#include "sim/engine/device_sharing.h"

namespace k3sim {

namespace {

// kPlain: no observer, no sharing, no progress model; the checks for them disappear from the inner loop.
template <bool kPlain>
class Run {
 public:
  Run(const TaskGraph& graph, std::span<const Time> durations, const EngineOptions& options)
      : graph_(graph),
        durations_(durations),
        progress_(options.progress),
        observer_(options.observer),
        queue_(graph.stream_count()) {
    if (options.slowdown != nullptr && !options.slowdown->trivial()) sharing_.emplace(graph, *options.slowdown);
    waiting_for_.assign(graph.in_degrees().begin(), graph.in_degrees().end());
    cursor_.assign(graph.stream_begin().begin(), graph.stream_begin().end());
    out_.times.start.resize(graph.task_count());
    out_.times.finish.resize(graph.task_count());
  }

  EngineResult run() {
    for (std::size_t s = 0; s < graph_.stream_count(); ++s) release_head(StreamId(s));
    start_released();
    for (Time next = next_time(); next != Time::max(); next = next_time()) {
      if (next != now_) note_pending();
      now_ = next;
      if constexpr (kPlain) {  // nobody sees the order within an instant and no rate depends on it: one task at a time
        finish(TaskId(queue_.top_id()));
      } else {
        if (progress_ != nullptr) collect_external();
        while (queue_.has_event_at(now_)) finish(TaskId(queue_.top_id()));
      }
      start_released();
    }
    note_pending();
    out_.times.makespan = now_;
    if (out_.stats.events != graph_.task_count()) report_stuck();
    return std::move(out_);
  }

 private:
  Time next_time() {
    const Time event = queue_.top_time();
    if constexpr (kPlain) return event;
    return progress_ == nullptr ? event : std::min(event, progress_->next_completion());
  }

  void note_pending() { out_.stats.max_pending = std::max(out_.stats.max_pending, running_); }

  // External completions go through the queue, so that all finishes of an instant are in one order.
  void collect_external() {
    finished_.clear();
    progress_->advance(now_, finished_);
    for (TaskId t : finished_) complete_at(now_, t);
  }

  void complete_at(Time time, TaskId t) {
    queue_.set(graph_.stream(t), time, Event::make_key(Priority::complete, t.value));
  }

  void finish(TaskId t) {
    const StreamId s = graph_.stream(t);
    queue_.pop(s);
    out_.times.finish[t.value] = now_;
    if constexpr (!kPlain) {
      if (sharing_ && sharing_->shares(t)) sharing_->finish(t);
      if (observer_ != nullptr) observer_->on_finish(t, now_);
    }
    ++out_.stats.events;
    --running_;
    ++cursor_[s.value];
    for (TaskId next : graph_.successors(t)) {
      if (--waiting_for_[next.value] != 0) continue;
      const StreamId other = graph_.stream(next);
      if (other != s && graph_.stream_order()[cursor_[other.value]] == next) released_.push_back(next);
    }
    release_head(s);
  }

  void release_head(StreamId s) {
    const std::uint32_t at = cursor_[s.value];
    if (at == graph_.stream_begin()[s.value + 1]) return;
    const TaskId head = graph_.stream_order()[at];
    if (waiting_for_[head.value] == 0) released_.push_back(head);
  }

  void start_released() {
    running_ += released_.size();
    if (!kPlain && released_.size() > 1) std::sort(released_.begin(), released_.end());
    for (TaskId t : released_) start(t);
    released_.clear();
    if constexpr (!kPlain) {
      if (sharing_) out_.stats.rate_changes += sharing_->update(now_, queue_);
    }
  }

  void start(TaskId t) {
    out_.times.start[t.value] = now_;
    const Time work = durations_[t.value];
    if constexpr (!kPlain) {
      if (observer_ != nullptr) observer_->on_start(t, now_);
      if (start_elsewhere(t, work)) return;
    }
    prefetch_after(t);
    complete_at(now_ + work, t);
  }

  // Hands a task whose end is not fixed at its start to the sharing rules or to the progress model.
  bool start_elsewhere(TaskId t, Time work) {
    const ResourceClass resource = graph_.resource(t);
    if (resource == kExclusive) return false;
    if (is_external(resource)) {
      CS_CHECK(progress_ != nullptr, "task {} needs a progress model and there is none", t.value);
      if (sharing_ && sharing_->shares(t)) sharing_->start(t, work, now_);
      progress_->start(t, work, now_);
      return true;
    }
    if (!sharing_ || !sharing_->shares(t)) return false;
    sharing_->start(t, work, now_);
    return true;
  }

  // A stream's tasks usually have neighbouring ids, but with many streams the processor sees no sequential access.
  void prefetch_after(TaskId t) {
    constexpr std::uint32_t kPerLine = 8, kAhead = 2 * kPerLine;
    if (t.value % kPerLine != 0 || t.value + kAhead >= durations_.size()) return;
    const std::uint32_t next = t.value + kAhead;
    __builtin_prefetch(&durations_[next]);
    __builtin_prefetch(&out_.times.start[next], 1);
    __builtin_prefetch(&out_.times.finish[next], 1);
    __builtin_prefetch(&waiting_for_[next]);
  }

  [[noreturn]] void report_stuck() const {
    std::vector<bool> done(graph_.task_count(), false);
    for (std::size_t s = 0; s < graph_.stream_count(); ++s) {
      const std::uint32_t begin = graph_.stream_begin()[s], at = cursor_[s];
      for (std::uint32_t p = begin; p < at; ++p) done[graph_.stream_order()[p].value] = true;
      if (at == graph_.stream_begin()[s + 1]) continue;
      const TaskId head = graph_.stream_order()[at];
      CS_CHECK(waiting_for_[head.value] != 0, "the progress model never finished task {}", head.value);
    }
    throw CycleError(find_cycle(graph_, done));
  }

  const TaskGraph& graph_;
  std::span<const Time> durations_;
  ProgressModel* progress_;
  Observer* observer_;
  std::optional<DeviceSharing> sharing_;
  StreamQueue queue_;
  std::vector<std::uint32_t> waiting_for_;  // by task: explicit predecessors not yet finished
  std::vector<std::uint32_t> cursor_;       // by stream: position of the running or next task
  std::vector<TaskId> released_;            // may start at now_
  std::vector<TaskId> finished_;            // scratch of collect_external
  std::size_t running_ = 0;
  Time now_;
  EngineResult out_;
};

}  // namespace

EngineResult simulate(const TaskGraph& graph, std::span<const Time> durations, const EngineOptions& options) {
  CS_CHECK(durations.size() == graph.task_count(), "{} durations for {} tasks", durations.size(), graph.task_count());
  const bool sharing = options.slowdown != nullptr && !options.slowdown->trivial();
  const bool external = options.progress != nullptr || graph.has_external_tasks();
  const bool plain = !sharing && !external && options.observer == nullptr;
  return plain ? Run<true>(graph, durations, options).run() : Run<false>(graph, durations, options).run();
}

}  // namespace k3sim
