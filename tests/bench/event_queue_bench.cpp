// Hold model: pop one, push one with an exponential increment; and the same with std::priority_queue for comparison.
#include <cmath>
#include <queue>
#include <vector>

#include "sim/base/rng.h"
#include "sim/engine/event_queue.h"
#include "tests/bench/bench_report.h"

namespace k3sim::bench {
namespace {

std::vector<Time> increments() {
  std::vector<Time> out(std::size_t{1} << 16);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = Time::ps(1 + static_cast<std::int64_t>(-1e6 * std::log(random_uniform({.seed = 1}, i))));
  }
  return out;
}

struct After {
  bool operator()(const Event& a, const Event& b) const { return before(b, a); }
};

class StandardQueue {
 public:
  void push(const Event& e) { queue_.push(e); }
  Event pop() {
    const Event e = queue_.top();
    queue_.pop();
    return e;
  }

 private:
  std::priority_queue<Event, std::vector<Event>, After> queue_;
};

template <class Queue>
void hold(benchmark::State& state) {
  const std::vector<Time> step = increments();
  const auto pending = static_cast<std::uint32_t>(state.range(0));
  Queue queue;
  for (std::uint32_t i = 0; i < pending; ++i) queue.push({step[i % step.size()], i, 0});
  std::size_t n = 0;
  for (auto _ : state) {
    const Event e = queue.pop();
    queue.push({e.time + step[n++ % step.size()], e.key, 0});
  }
  report_rate(state, "pairs/s", 1, pending <= 1000 ? 17e6 : 4e6);
}
BENCHMARK(hold<EventQueue>)->RangeMultiplier(10)->Range(10, 1'000'000);
BENCHMARK(hold<StandardQueue>)->RangeMultiplier(10)->Range(10, 1'000'000);

}  // namespace
}  // namespace k3sim::bench
