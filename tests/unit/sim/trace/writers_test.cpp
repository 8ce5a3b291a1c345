// Both trace writers say the same, and nothing a viewer would refuse.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "perfetto_reader.h"
#include "sample_trace.h"
#include "sim/trace/chrome_json.h"
#include "sim/trace/gzip.h"
#include "sim/trace/perfetto_proto.h"

using namespace k3sim;
using Json = nlohmann::json;

namespace {

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> out;
  for (const Json& e : trace.at("traceEvents"))
    if (e.at("ph") == phase) out.push_back(e);
  return out;
}

}  // namespace

TEST_CASE("chrome_json: a strict parser reads slices, names, counters and arrows") {
  const Json j = Json::parse(chrome_json(sample_trace()));
  CHECK(j.at("otherData").at("program") == "k3sim \"test\"");
  const auto slices = events_of(j, "X");
  REQUIRE(slices.size() == 3);
  CHECK(slices[1].at("ts").get<double>() == doctest::Approx(10.0));
  CHECK(slices[1].at("dur").get<double>() == doctest::Approx(2.345));
  CHECK(slices[0].at("args").at("what") == "F0");
  CHECK(events_of(j, "C")[1].at("args").at("GiB").get<double>() == 2.25);
  const Json start = events_of(j, "s").at(0), finish = events_of(j, "f").at(0);
  CHECK(start.at("id") == finish.at("id"));
  CHECK(start.at("tid") == slices[1].at("tid"));
  CHECK(finish.at("tid") == slices[2].at("tid"));
  CHECK(finish.at("bp") == "e");
  CHECK(events_of(j, "M").size() == 2 * (2 + 3));
}

TEST_CASE("perfetto_proto: a strict reader accepts it and finds the same slices, arrows and counters") {
  const Trace t = sample_trace();
  const PerfettoReader r(perfetto_proto(t));
  REQUIRE(r.slices.size() == t.slices.size());
  CHECK(r.slices[0].name == "gemm");
  CHECK(r.slices[1].category == "transfer");
  CHECK(r.slices[1].finish == 12'345);
  CHECK(r.slices[1].flows == r.slices[2].flows);
  CHECK(r.slices[0].flows.empty());
  CHECK(r.tracks.at(r.slices[2].track) == "compute");
  CHECK(r.tracks.at(r.parents.at(r.slices[2].track)) == "rank 1");
  REQUIRE(r.counters.size() == 1);
  CHECK(r.counters.begin()->second == std::vector<double>{1.5, 2.25, 1.5});
}

TEST_CASE("traces: neighbouring slices never overlap after rounding to nanoseconds, whatever their lengths") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace t = random_trace(seed, 5, 300);
    CHECK(trace_problems(t).empty());
    const PerfettoReader r(perfetto_proto(t));
    CHECK(r.slices.size() == t.slices.size());
    std::map<int, double> busy_until;
    for (const Json& e : events_of(Json::parse(chrome_json(t)), "X")) {
      double& until = busy_until[e.at("tid").get<int>()];
      CHECK(e.at("ts").get<double>() >= until - 1e-9);
      until = e.at("ts").get<double>() + e.at("dur").get<double>();
    }
  }
}

TEST_CASE("trace_problems: overlap, arrows back in time and counters that do not return are named") {
  CHECK(trace_problems(sample_trace()).empty());
  Trace overlap = sample_trace();
  overlap.slices.push_back({Time::us(19), Time::us(25), 2, 1, 0, 0});
  CHECK(trace_problems(overlap).at(0).find("overlaps") != std::string::npos);
  Trace back = sample_trace();
  std::swap(back.flows[0].from, back.flows[0].to);
  CHECK(trace_problems(back).at(0).find("back in time") != std::string::npos);
  Trace counter = sample_trace();
  counter.samples.back().value = 7;
  CHECK(trace_problems(counter).at(0).find("began at 1.5 and ends at 7") != std::string::npos);
}

TEST_CASE("json_quoted: quotes, backslashes and control characters survive a round trip") {
  const std::string text = "a\"b\\c\n\t\x01 µ";
  CHECK(Json::parse(json_quoted(text)).get<std::string>() == text);
}

TEST_CASE("wire: damaged input is refused, not guessed") {
  WireWriter w;
  w.text(1, "hello");
  const std::string cut = w.bytes().substr(0, 4);
  CHECK_THROWS_AS(WireReader(cut).next(), WireError);
  CHECK_THROWS_AS(WireReader(std::string(11, '\xff')).next(), WireError);
  WireWriter numbers;
  numbers.number(3, 300);
  numbers.real(4, -2.5);
  WireReader r(numbers.bytes());
  CHECK(r.next().value == 300);
  CHECK(r.next().real() == -2.5);
  CHECK(r.done());
}

TEST_CASE("gzip: large and empty inputs come back, equal inputs give equal bytes, damage is noticed") {
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i * 7919 % 10'007);
  for (const std::string& text : {std::string(), std::string("a"), large}) CHECK(gunzip(gzip(text)) == text);
  CHECK(gzip(large) == gzip(large));
  CHECK(gzip(large).size() < large.size() / 2);
  CHECK_THROWS(gunzip(gzip(large).substr(0, 1000)));
  CHECK_THROWS(gunzip("not gzip"));
}
