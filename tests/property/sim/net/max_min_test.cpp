// Max-min rates on random networks: feasible, fair, equal to a slow independent solver, and consistent over time.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/base/rng.h"
#include "sim/net/flow_engine.h"

using namespace k3sim;

namespace {

struct Problem {
  std::vector<Bandwidth> capacities;
  std::vector<std::vector<PathElement>> paths;
  std::vector<double> caps;
};

Problem random_problem(std::uint64_t seed, double scale = 1.0) {
  const RandomKey key{.seed = seed, .purpose = 1};
  std::uint64_t i = 0;
  const auto below = [&](std::uint64_t n) { return random_below(key, i++, n); };
  Problem p;
  const std::size_t links = 2 + below(12), flows = 1 + below(24);
  for (std::size_t l = 0; l < links; ++l) p.capacities.emplace_back(scale * static_cast<double>(1 + below(20)) * 1e9);
  for (std::size_t f = 0; f < flows; ++f) {
    std::vector<PathElement> path;
    for (std::size_t l = 0; l < links; ++l) {
      if (below(links) < 3) path.push_back({LinkId(l), static_cast<double>(1 + below(4)) * (below(5) == 0 ? 0.5 : 1)});
    }
    if (path.empty()) path.push_back({LinkId(below(links)), 1.0});
    p.paths.push_back(path);
    p.caps.push_back(below(3) == 0 ? scale * static_cast<double>(1 + below(8)) * 0.5e9
                                   : std::numeric_limits<double>::infinity());
  }
  return p;
}

// Raises all rates together in the smallest steps that matter: O(flows^2 links), nothing shared with the solver.
std::vector<double> brute_force(const Problem& p) {
  std::vector<double> rate(p.paths.size(), 0);
  std::vector<bool> fixed(p.paths.size(), false);
  for (;;) {
    double step = std::numeric_limits<double>::infinity();
    std::vector<double> load(p.capacities.size(), 0), growing(p.capacities.size(), 0);
    for (std::size_t f = 0; f < rate.size(); ++f) {
      for (const auto& e : p.paths[f]) {
        load[e.link.value] += e.weight * rate[f];
        if (!fixed[f]) growing[e.link.value] += e.weight;
      }
      if (!fixed[f]) step = std::min(step, p.caps[f] - rate[f]);
    }
    for (std::size_t l = 0; l < load.size(); ++l) {
      if (growing[l] > 0) step = std::min(step, (p.capacities[l].value() - load[l]) / growing[l]);
    }
    if (std::all_of(fixed.begin(), fixed.end(), [](bool b) { return b; })) return rate;
    for (std::size_t f = 0; f < rate.size(); ++f) {
      if (!fixed[f]) rate[f] += step;
    }
    for (std::size_t f = 0; f < rate.size(); ++f) {
      if (fixed[f]) continue;
      bool stuck = rate[f] >= p.caps[f] * (1 - 1e-12);
      for (const auto& e : p.paths[f]) {
        const double l = load[e.link.value] + step * growing[e.link.value];
        stuck = stuck || l >= p.capacities[e.link.value].value() * (1 - 1e-12);
      }
      fixed[f] = stuck;
    }
  }
}

void start_all(FlowEngine& engine, const Problem& p, std::int64_t bytes) {
  for (std::size_t f = 0; f < p.paths.size(); ++f) {
    engine.start({.id = FlowId(f), .path = p.paths[f], .bytes = Bytes(bytes), .cap = Bandwidth(p.caps[f])}, Time());
  }
}

std::vector<double> rates(FlowEngine& engine, std::size_t flows) {
  std::vector<double> out(flows, 0);
  engine.for_each_active([&](FlowId id, double rate, auto) { out[id.value] = rate; });
  return out;
}

Time run_to_end(FlowEngine& engine, std::vector<Time>* finish = nullptr) {
  std::vector<FlowId> done;
  Time last;
  for (Time t = engine.next_event(); t != Time::max(); t = engine.next_event()) {
    done.clear();
    engine.advance(t, done);
    for (FlowId f : done) {
      last = t;
      if (finish != nullptr) (*finish)[f.value] = t;
    }
  }
  return last;
}

}  // namespace

TEST_CASE("max_min: agrees with a brute-force solver on random networks") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Problem p = random_problem(seed);
    FlowEngine engine(p.capacities);
    start_all(engine, p, 1'000'000);
    const auto got = rates(engine, p.paths.size());
    const auto want = brute_force(p);
    for (std::size_t f = 0; f < got.size(); ++f) {
      INFO("seed ", seed, " flow ", f);
      CHECK(got[f] == doctest::Approx(want[f]).epsilon(1e-9));
    }
  }
}

TEST_CASE("max_min: at every instant no link is over capacity and every flow has a bottleneck where it is fastest") {
  for (std::uint64_t seed = 1000; seed < 1150; ++seed) {
    const Problem p = random_problem(seed);
    FlowEngine engine(p.capacities);
    for (std::size_t f = 0; f < p.paths.size(); ++f) {  // unequal sizes and latencies: many different instants
      engine.start({.id = FlowId(f),
                    .path = p.paths[f],
                    .bytes = Bytes(1000 * static_cast<std::int64_t>(f * f + 1)),
                    .latency = Time::ns(static_cast<std::int64_t>(seed * (f + 3) % 50)),
                    .cap = Bandwidth(p.caps[f])},
                   Time());
    }
    std::vector<FlowId> done;
    for (Time t = engine.next_event(); t != Time::max(); t = engine.next_event()) {
      std::vector<double> load(p.capacities.size(), 0), fastest(p.capacities.size(), 0);
      engine.for_each_active([&](FlowId, double rate, auto path) {
        for (const auto& e : path) {
          load[e.link] += e.weight() * rate;
          fastest[e.link] = std::max(fastest[e.link], rate);
        }
      });
      for (std::size_t l = 0; l < load.size(); ++l) REQUIRE(load[l] <= p.capacities[l].value() * (1 + 1e-9));
      engine.for_each_active([&](FlowId id, double rate, auto path) {
        bool bottleneck = rate >= p.caps[id.value] * (1 - 1e-9);
        for (const auto& e : path) {
          bottleneck = bottleneck || (load[e.link] >= p.capacities[e.link].value() * (1 - 1e-9) &&
                                      rate >= fastest[e.link] * (1 - 1e-9));
        }
        REQUIRE(bottleneck);
      });
      done.clear();
      engine.advance(t, done);
    }
    CHECK(engine.idle());
  }
}

TEST_CASE("max_min: doubling every capacity halves the time of the whole run") {
  for (std::uint64_t seed = 2000; seed < 2100; ++seed) {
    const Problem slow = random_problem(seed), fast = random_problem(seed, 2.0);
    FlowEngine a(slow.capacities), b(fast.capacities);
    start_all(a, slow, 50'000'000);
    start_all(b, fast, 50'000'000);
    CHECK(run_to_end(a) / run_to_end(b) == doctest::Approx(2.0).epsilon(1e-9));
  }
}

TEST_CASE("max_min: removing a flow never lowers the smallest rate") {
  for (std::uint64_t seed = 3000; seed < 3100; ++seed) {
    const Problem all = random_problem(seed);
    if (all.paths.size() < 2) continue;
    Problem fewer = all;
    fewer.paths.pop_back();
    fewer.caps.pop_back();
    FlowEngine a(all.capacities), b(fewer.capacities);
    start_all(a, all, 1000);
    start_all(b, fewer, 1000);
    auto with = rates(a, all.paths.size());
    const auto without = rates(b, fewer.paths.size());
    with.pop_back();
    CHECK(*std::min_element(without.begin(), without.end()) >=
          *std::min_element(with.begin(), with.end()) * (1 - 1e-12));
  }
}

TEST_CASE("max_min: a class of m flows ends when m separate flows would") {
  for (std::uint64_t seed = 4000; seed < 4080; ++seed) {
    Problem p = random_problem(seed);
    for (auto& path : p.paths) {
      for (auto& e : path) e.weight = 1;
    }
    FlowEngine split(p.capacities), folded(p.capacities);
    std::vector<PathElement> threefold = p.paths[0];
    for (auto& e : threefold) e.weight = 3;
    const auto add = [&](FlowEngine& engine, std::size_t id, const std::vector<PathElement>& path, double cap) {
      engine.start({.id = FlowId(id), .path = path, .bytes = Bytes(7'000'000), .cap = Bandwidth(cap)}, Time());
    };
    add(folded, 0, threefold, p.caps[0]);
    for (std::size_t i = 0; i < 3; ++i) add(split, i == 0 ? 0 : 1000 + i, p.paths[0], p.caps[0]);
    for (std::size_t f = 1; f < p.paths.size(); ++f)
      add(folded, f, p.paths[f], p.caps[f]), add(split, f, p.paths[f], p.caps[f]);
    CHECK(run_to_end(folded).seconds() == doctest::Approx(run_to_end(split).seconds()).epsilon(1e-9));
  }
}

TEST_CASE("max_min: the order in which flows are started does not change when they finish") {
  for (std::uint64_t seed = 5000; seed < 5100; ++seed) {
    const Problem p = random_problem(seed);
    const std::size_t n = p.paths.size();
    std::vector<Time> forward(n), backward(n);
    FlowEngine a(p.capacities), b(p.capacities);
    for (std::size_t i = 0; i < n; ++i) {
      for (FlowEngine* engine : {&a, &b}) {
        const std::size_t f = engine == &a ? i : n - 1 - i;
        engine->start({.id = FlowId(f),
                       .path = p.paths[f],
                       .bytes = Bytes(3'000'000 + 1000 * static_cast<std::int64_t>(f)),
                       .cap = Bandwidth(p.caps[f])},
                      Time());
      }
    }
    run_to_end(a, &forward);
    run_to_end(b, &backward);
    for (std::size_t f = 0; f < n; ++f) {
      CHECK(forward[f].picoseconds() == backward[f].picoseconds());
    }
  }
}

// Equal capacities and whole weights make many links fill up together, where the order of filling could show.
TEST_CASE("max_min: whatever came and went before, the rates have the bits of a network that starts afresh") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 6000; seed < 6150; ++seed) {
    Problem p = random_problem(seed);
    if (seed % 2 == 0) p.capacities.assign(p.capacities.size(), Bandwidth(12.5e9));
    const std::size_t n = p.paths.size();
    FlowEngine engine(p.capacities);
    std::vector<std::size_t> round(n, 0);
    const auto start = [&](FlowEngine& e, std::size_t f, Time now) {
      const auto size = static_cast<std::int64_t>(1 + (seed * 31 + f * 7 + round[f] * 13) % 5) * 1'000'000;
      e.start({.id = FlowId(f), .path = p.paths[f], .bytes = Bytes(size), .cap = Bandwidth(p.caps[f])}, now);
    };
    for (std::size_t f = 0; f < n; ++f) start(engine, f, Time());
    std::vector<FlowId> done;
    for (Time t = engine.next_event(); t != Time::max(); t = engine.next_event()) {
      FlowEngine fresh(p.capacities);
      engine.for_each_active([&](FlowId id, double, auto) { start(fresh, id.value, Time()); });
      const auto want = rates(fresh, n), got = rates(engine, n);
      for (std::size_t f = 0; f < n; ++f) {
        INFO("seed ", seed, " flow ", f, " at ", t.picoseconds(), " ps");
        REQUIRE(got[f] == want[f]);
      }
      compared += n;
      done.clear();
      engine.advance(t, done);
      for (FlowId f : done)
        if (round[f.value]++ < 4) start(engine, f.value, t);
    }
  }
  CHECK(compared > 50'000);
}
