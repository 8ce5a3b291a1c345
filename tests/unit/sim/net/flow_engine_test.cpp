// Flow engine: worked examples with known times.
#include "sim/net/flow_engine.h"

#include <doctest/doctest.h>

#include <vector>

#include "sim/base/check.h"

using namespace k3sim;

namespace {
const std::vector<Bandwidth> kTwoLinks{Bandwidth(10e9), Bandwidth(4e9)};
FlowRequest flow(std::uint32_t id, std::span<const PathElement> path, std::int64_t bytes, Time latency = {}) {
  return {.id = FlowId(static_cast<std::size_t>(id)), .path = path, .bytes = Bytes(bytes), .latency = latency};
}
std::vector<std::pair<std::uint32_t, Time>> finish_order(FlowEngine& engine) {
  std::vector<std::pair<std::uint32_t, Time>> out;
  std::vector<FlowId> done;
  for (Time t = engine.next_event(); t != Time::max(); t = engine.next_event()) {
    done.clear();
    engine.advance(t, done);
    for (FlowId f : done) out.emplace_back(f.value, t);
  }
  return out;
}
}  // namespace

TEST_CASE("flow_engine: a flow on two links is limited by the tighter one, after its latency") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}, {LinkId(1)}};
  engine.start(flow(0, path, 4'000'000, Time::us(5)), Time());
  const auto done = finish_order(engine);
  REQUIRE(done.size() == 1);
  CHECK(done[0].second == Time::us(5) + Time::ms(1));
}

TEST_CASE("flow_engine: two flows share, and the survivor speeds up") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}};
  engine.start(flow(0, path, 10'000'000), Time());
  engine.start(flow(1, path, 20'000'000), Time());
  const auto done = finish_order(engine);
  // Both at 5 GB/s until 2 ms, then the second has 10 MB left at 10 GB/s.
  CHECK(done[0] == std::pair{0u, Time::ms(2)});
  CHECK(done[1] == std::pair{1u, Time::ms(3)});
}

TEST_CASE("flow_engine: a late flow takes its share only from its first byte on") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}};
  engine.start(flow(0, path, 10'000'000), Time());
  engine.start(flow(1, path, 10'000'000, Time::us(500)), Time());
  const auto done = finish_order(engine);
  CHECK(done[0] == std::pair{0u, Time::us(1500)});
  CHECK(done[1] == std::pair{1u, Time::us(2000)});
}

TEST_CASE("flow_engine: completions of one instant come by id, whatever the order of starting") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}};
  for (const std::uint32_t id : {7u, 2u, 5u}) engine.start(flow(id, path, 1'000'000), Time());
  const auto done = finish_order(engine);
  REQUIRE(done.size() == 3);
  CHECK(done[0].first == 2);
  CHECK(done[1].first == 5);
  CHECK(done[2].first == 7);
  CHECK(done[0].second == done[2].second);
  CHECK(engine.stats().solves <= 2);  // one for the three together, one after they left
}

TEST_CASE("flow_engine: nothing to send completes when the latency is paid") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}};
  engine.start(flow(3, path, 0, Time::us(7)), Time());
  CHECK(finish_order(engine)[0] == std::pair{3u, Time::us(7)});
}

TEST_CASE("flow_engine: a degraded link slows the flows on it from then on") {
  FlowEngine engine(kTwoLinks);
  const std::vector<PathElement> path{{LinkId(0)}};
  engine.start(flow(0, path, 10'000'000), Time());
  REQUIRE(engine.next_event() == Time::ms(1));
  engine.set_capacity(LinkId(0), Bandwidth(5e9), Time::us(500));
  CHECK(engine.next_event() == Time::us(1500));
  engine.set_capacity(LinkId(0), Bandwidth(10e9), Time::us(1000));
  CHECK(engine.next_event() == Time::us(1250));
}

TEST_CASE("flow_engine: usage counts every byte and the true peak") {
  FlowEngine engine(kTwoLinks);
  engine.record_usage();
  const std::vector<PathElement> path{{LinkId(0), 2.0}};
  engine.start(flow(0, path, 1'000'000), Time());
  engine.start(flow(1, path, 1'000'000), Time());
  finish_order(engine);
  CHECK(engine.usage()[0].bytes == doctest::Approx(4e6));
  CHECK(engine.usage()[0].peak_load == doctest::Approx(10e9));
  CHECK(engine.usage()[1].bytes == 0);
  CHECK(engine.stats().seconds_lost == doctest::Approx(2 * 0.2e-3));
}

TEST_CASE("flow_engine: a flow over a link that is down is a broken promise of the router") {
  const std::vector<Bandwidth> down{Bandwidth(0)};
  FlowEngine engine(down);
  const std::vector<PathElement> path{{LinkId(0)}};
  CHECK_THROWS_AS(engine.start(flow(0, path, 10), Time()), InternalError);
}
