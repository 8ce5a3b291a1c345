// The total order, the FIFO for the current instant, the hole at the root and removal, against std::stable_sort.
#include "sim/engine/event_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/property/sim/random_graph.h"

namespace k3sim {
namespace {

Event event(std::int64_t time, Priority p, std::uint32_t id, std::uint64_t generation = 0) {
  return {Time::ps(time), Event::make_key(p, id), generation};
}

TEST_CASE("event_queue: events come by time, then by named priority, then by id") {
  EventQueue q;
  q.push(event(5, Priority::start, 1));
  q.push(event(5, Priority::complete, 9));
  q.push(event(3, Priority::stop, 7));
  q.push(event(5, Priority::complete, 2));
  q.push(event(5, Priority::release_dependents, 0));
  std::vector<std::uint32_t> ids;
  while (!q.empty()) ids.push_back(q.pop().id());
  CHECK(ids == std::vector<std::uint32_t>{7, 2, 9, 0, 1});
}

TEST_CASE("event_queue: an event pushed for the current instant still respects the order") {
  EventQueue q;
  q.push(event(4, Priority::complete, 1));
  q.push(event(4, Priority::start, 1));
  CHECK(q.pop().priority() == Priority::complete);
  q.push(event(4, Priority::stop, 0));      // appended to the FIFO
  q.push(event(4, Priority::complete, 2));  // overtakes it through the heap
  CHECK(q.pop().id() == 2);
  CHECK(q.pop().priority() == Priority::start);
  CHECK(q.pop().priority() == Priority::stop);
  CHECK(q.empty());
}

TEST_CASE("event_queue: priorities of one instant are complete, rates, release, start, sample, stop") {
  CHECK(Priority::complete < Priority::network_rates_change);
  CHECK(Priority::network_rates_change < Priority::release_dependents);
  CHECK(Priority::release_dependents < Priority::start);
  CHECK(Priority::start < Priority::sample);
  CHECK(Priority::sample < Priority::stop);
}

TEST_CASE("event_queue: remove_if drops outdated generations and keeps the rest in order") {
  EventQueue q;
  for (std::uint32_t i = 0; i < 100; ++i) q.push(event(1000 - 7 * (i % 13), Priority::complete, i, i % 3));
  q.pop();
  q.remove_if([](const Event& e) { return e.generation != 1; });
  CHECK(q.size() == 33);
  for (Event last = q.pop(); !q.empty();) {
    const Event e = q.pop();
    CHECK(e.generation == 1);
    CHECK(before(last, e));
    last = e;
  }
}

TEST_CASE("event_queue: any mixture of pushes and pops equals repeated selection of the least") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::Dice dice(seed, 9);
    EventQueue q;
    std::vector<Event> reference;
    std::int64_t now = 0;
    for (std::uint32_t step = 0; step < 400; ++step) {
      if (reference.empty() || dice.chance(52)) {
        const Event e = event(now + dice.below(6), static_cast<Priority>(dice.below(6)), step);
        q.push(e);
        reference.push_back(e);
        continue;
      }
      const auto least = std::min_element(reference.begin(), reference.end(), before);
      REQUIRE(q.size() == reference.size());
      REQUIRE(q.has_event_at(Time::ps(now)) == (least->time == Time::ps(now)));
      const Event e = q.pop();
      REQUIRE(e.key == least->key);
      now = e.time.picoseconds();
      reference.erase(least);
    }
  }
}

}  // namespace
}  // namespace k3sim
