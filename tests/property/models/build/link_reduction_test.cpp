// Leaving out links that cannot decide changes no completion.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/build/link_reduction.h"
#include "tests/property/sim/random_graph.h"

using namespace k3sim;
using testing::Dice;

namespace {

// Random flows over the patterns, one after the other on some streams of work: their completion times.
std::vector<Time> completions(const std::vector<Pattern>& patterns, const std::vector<Bandwidth>& capacities,
                              std::uint64_t seed) {
  FlowEngine engine(capacities);
  std::vector<Time> out(patterns.size());
  Dice dice(seed, 4);
  std::vector<std::pair<Time, std::size_t>> starts;
  for (std::size_t p = 0; p < patterns.size(); ++p) starts.emplace_back(Time::us(dice.below(300)), p);
  std::sort(starts.begin(), starts.end());
  std::vector<FlowId> done;
  std::size_t next = 0;
  while (next < starts.size() || !engine.idle()) {
    const Time at = next < starts.size() ? std::min(engine.next_event(), starts[next].first) : engine.next_event();
    done.clear();
    engine.advance(at, done);
    for (FlowId f : done) out[f.value] = at;
    for (; next < starts.size() && starts[next].first == at; ++next) {
      std::vector<PathElement> path;
      for (const LinkLoad& l : patterns[starts[next].second]) path.push_back({LinkId(std::size_t{l.link}), l.load});
      engine.start({.id = FlowId(starts[next].second), .path = path, .bytes = Bytes(1'000'000)}, at);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("link reduction: the links kept give the times of all links, and equal links count once") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed, 4);
    Topology t;
    const std::size_t links = 40 + dice.below(40);
    std::vector<Bandwidth> all;
    for (std::size_t l = 0; l < links; ++l) {
      t.links.push_back({0, 0, static_cast<LinkClass>(dice.below(3)), 1,
                         Bandwidth(1e9 * static_cast<double>(1 + dice.below(4))), Time()});
      all.push_back(t.links.back().capacity);
    }
    std::vector<Pattern> patterns(12);
    for (std::uint32_t l = 0; l < links; ++l) {
      const auto twin = dice.below(3);  // loads come in a few kinds, so that equal and dominated links occur
      for (std::size_t p = twin; p < patterns.size(); p += 3)
        patterns[p].push_back({l, 0.25 * static_cast<double>(1 + dice.below(3))});
    }
    const LinkReduction r = reduce_links(t, patterns);
    CHECK(r.kept.size() < links);
    std::vector<Bandwidth> few;
    for (const KeptLink& k : r.kept) few.push_back(t.links[k.link].capacity);
    const auto a = completions(patterns, all, seed), b = completions(r.patterns, few, seed);
    CAPTURE(seed);
    for (std::size_t p = 0; p < a.size(); ++p) CHECK(a[p].seconds() == doctest::Approx(b[p].seconds()).epsilon(1e-8));
  }
}

TEST_CASE("link reduction: traffic over a link that is down is refused by name") {
  Topology t;
  t.vertices = {{VertexKind::gpu, 0, 0}, {VertexKind::nvswitch, 0, 0}};
  t.links.push_back({0, 1, LinkClass::nvlink, 1, Bandwidth(0), Time()});
  CHECK_THROWS(reduce_links(t, {{{0, 1.0}}}));
}
