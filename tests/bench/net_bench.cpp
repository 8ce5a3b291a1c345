// Flow engine: completions per second on one core.
//   star:      hosts with one egress and one ingress, every host sends to a rotating peer, unequal sizes, no symmetry:
//              the set-up of the bars
//   star_with_replies: each flow also takes 5 % of its rate on the way back, as in SimGrid's default model, which ties
//              nearly all flows together
//   fat_tree:  the same traffic through leaf trunks (64 hosts a leaf) whose load entangles the flows
//   oversubscribed: trunks of half the rate, which all flows share
//   symmetric: collective-like phases, all classes end in one instant (batching)
// Bars: 2 M completions/s with 64 concurrent classes; 120 k/s with 2,048 entangled flows.
// flows/solve: flows that the solver looked at for one completion.
// Source: engine-design notes sections 5 and 17 (SimGrid 3.32 on the star: 550 k/s with 64 hosts, 60 k/s with 2,048).
#include <benchmark/benchmark.h>

#include <vector>

#include "sim/net/flow_engine.h"

namespace {

using namespace k3sim;

struct Traffic {
  std::size_t hosts;
  std::size_t hosts_per_leaf;  // 0: star
  double trunk = 1.0;          // capacity of a leaf's trunk over the sum of its hosts
  double replies = 0.0;        // share of the rate that flows back

  std::size_t leaves() const { return hosts_per_leaf == 0 ? 0 : hosts / hosts_per_leaf; }
  std::vector<Bandwidth> capacities() const {
    std::vector<Bandwidth> c(2 * hosts, Bandwidth(50e9));
    for (std::size_t l = 0; l < 2 * leaves(); ++l) c.emplace_back(50e9 * trunk * static_cast<double>(hosts_per_leaf));
    return c;
  }
  void path(std::size_t from, std::size_t to, std::vector<PathElement>& out) const {
    out = {{LinkId(from)}, {LinkId(hosts + to)}};
    if (replies > 0) {
      out.push_back({LinkId(to), replies});
      out.push_back({LinkId(hosts + from), replies});
    }
    if (hosts_per_leaf == 0) return;
    const std::size_t a = from / hosts_per_leaf, b = to / hosts_per_leaf;
    if (a == b) return;
    out.push_back({LinkId(2 * hosts + a)});
    out.push_back({LinkId(2 * hosts + leaves() + b)});
  }
};

void rotate(benchmark::State& state, const Traffic& traffic, double bar) {
  std::vector<PathElement> path;
  std::vector<FlowId> done;
  std::int64_t completions = 0;
  std::uint64_t solved = 0;
  for (auto _ : state) {
    const auto capacities = traffic.capacities();
    FlowEngine engine(capacities);
    std::vector<std::size_t> round(traffic.hosts, 0);
    const auto send = [&](std::size_t h, Time now) {
      const std::size_t peer = (h + 1 + (round[h]++ * 7 + h * 13) % (traffic.hosts - 1)) % traffic.hosts;
      traffic.path(h, peer, path);
      const auto size = static_cast<std::int64_t>(1'000'000 + (h * 7919 + round[h] * 104729) % 1'000'000);
      engine.start({.id = FlowId(h), .path = path, .bytes = Bytes(size)}, now);
    };
    for (std::size_t h = 0; h < traffic.hosts; ++h) send(h, Time());
    for (std::size_t n = 0; n < 200'000;) {
      const Time now = engine.next_event();
      done.clear();
      engine.advance(now, done);
      for (FlowId f : done) send(f.value, now);
      n += done.size();
    }
    completions += static_cast<std::int64_t>(engine.stats().completions);
    solved += engine.stats().flows_solved;
  }
  state.counters["completions/s"] = benchmark::Counter(static_cast<double>(completions), benchmark::Counter::kIsRate);
  state.counters["bar"] = bar;
  state.counters["flows/solve"] = static_cast<double>(solved) / static_cast<double>(completions);
}

void BM_Star(benchmark::State& state) {
  rotate(state, {static_cast<std::size_t>(state.range(0)), 0}, state.range(0) <= 64 ? 2e6 : 120e3);
}
void BM_StarWithReplies(benchmark::State& state) {
  rotate(state, {static_cast<std::size_t>(state.range(0)), 0, 1.0, 0.05}, 120e3);
}
void BM_FatTree(benchmark::State& state) {
  rotate(state, {static_cast<std::size_t>(state.range(0)), 64}, 120e3);
}
void BM_FatTreeOversubscribed(benchmark::State& state) {
  rotate(state, {static_cast<std::size_t>(state.range(0)), 64, 0.5}, 0);  // no bar: SimGrid was not timed on it
}

void BM_Symmetric(benchmark::State& state) {
  const auto classes = static_cast<std::size_t>(state.range(0));
  const std::vector<Bandwidth> capacities(2 * classes, Bandwidth(50e9));
  std::vector<FlowId> done;
  std::int64_t completions = 0;
  for (auto _ : state) {
    FlowEngine engine(capacities);
    Time now;
    for (int phase = 0; phase < 1000; ++phase) {
      for (std::size_t c = 0; c < classes; ++c) {
        const PathElement path[]{{LinkId(c), 8.0}, {LinkId(classes + (c + 1) % classes), 8.0}};
        engine.start({.id = FlowId(c), .path = path, .bytes = Bytes(1'000'000)}, now);
      }
      now = engine.next_event();
      done.clear();
      engine.advance(now, done);
    }
    completions += static_cast<std::int64_t>(engine.stats().completions);
  }
  state.counters["completions/s"] = benchmark::Counter(static_cast<double>(completions), benchmark::Counter::kIsRate);
}

BENCHMARK(BM_Star)->Arg(64)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_StarWithReplies)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FatTree)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FatTreeOversubscribed)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Symmetric)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
