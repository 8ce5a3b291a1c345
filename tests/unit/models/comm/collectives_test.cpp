// Closed-form collectives: against published anchors that are not in the tables, and against physics.
#include "models/comm/collectives.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/base/error.h"

using namespace k3sim;

namespace {
CommModel model(const std::string& gpu) {
  return load_comm_model(std::string(K3SIM_SOURCE_DIR) + "/hardware_profiles/collectives/" + gpu + ".yaml");
}
double bus_GBps(const CommModel& m, Collective kind, Bytes size, const CommGroup& g) {
  return size.as_double() * bus_factor(kind, g.ranks) / collective_time(m, kind, size, g).time.seconds() / kGB;
}
}  // namespace

TEST_CASE("collectives: eight H100 reach the published all_reduce rate at 1 GiB") {
  const CommModel m = model("h100_sxm");
  CHECK(bus_GBps(m, Collective::all_reduce, Bytes::gib(1), comm_group(8, 8)) == doctest::Approx(466).epsilon(0.04));
  CHECK(collective_time(m, Collective::all_reduce, Bytes::gib(1), comm_group(8, 8)).algorithm == Algorithm::nvls);
  CHECK(collective_time(m, Collective::all_reduce, Bytes::kib(64), comm_group(8, 8)).algorithm == Algorithm::ring);
}

TEST_CASE("collectives: four GPUs stay on the ring, five use in-switch reduction") {
  const CommModel m = model("h200_sxm");
  CHECK(collective_time(m, Collective::all_reduce, Bytes::gib(8), comm_group(4, 8)).algorithm == Algorithm::ring);
  CHECK(collective_time(m, Collective::all_reduce, Bytes::gib(8), comm_group(5, 8)).algorithm == Algorithm::nvls);
  const double published[] = {363.3, 414.2, 435.6, 460.0, 473.1};  // GB/s, 4 to 8 GPUs, 8 GiB
  for (int n = 4; n <= 8; ++n) {
    CAPTURE(n);
    CHECK(bus_GBps(m, Collective::all_reduce, Bytes::gib(8), comm_group(n, 8)) ==
          doctest::Approx(published[n - 4]).epsilon(0.06));
  }
}

TEST_CASE("collectives: H800 all_reduce is limited by the reduced NVLink") {
  CHECK(bus_GBps(model("h800_sxm"), Collective::all_reduce, Bytes::gib(4), comm_group(8, 8)) ==
        doctest::Approx(215).epsilon(0.06));
}

TEST_CASE("collectives: a multi-node all_reduce approaches the NICs' rate and never exceeds it") {
  const CommModel m = model("h100_sxm");
  for (const int nodes : {4, 32, 128, 1024}) {
    CAPTURE(nodes);
    const double rate = bus_GBps(m, Collective::all_reduce, Bytes::gib(16), comm_group(nodes * 8, 8));
    CHECK(rate < 8 * 50.0);
    CHECK(rate > 0.85 * 8 * m.scale_out.nic_payload.value() / kGB);
  }
}

TEST_CASE("collectives: small buckets waste a large ring") {
  const CommModel m = model("h100_sxm");
  const CommGroup g = comm_group(1024, 8);
  // Published ring efficiencies for 128 nodes: 4.4 % of the rate at 64 MiB, 92 % at 16 GiB.
  const double ideal = 8 * m.scale_out.nic_payload.value() / kGB;
  CHECK(bus_GBps(m, Collective::all_gather, Bytes::mib(64), g) / ideal < 0.08);  // LL128 halves the latency of Simple
  CHECK(bus_GBps(m, Collective::all_gather, Bytes::gib(16), g) / ideal > 0.8);
}

TEST_CASE("collectives: time never falls when the buffer grows, for every kind and group") {
  const CommModel m = model("h100_sxm");
  for (int k = 0; k < kCollectiveKinds; ++k) {
    for (const CommGroup& g :
         {comm_group(2, 8), comm_group(6, 8), comm_group(8, 8), comm_group(32, 8), comm_group(64, 1)}) {
      const auto kind = static_cast<Collective>(k);
      Time last;
      for (std::int64_t s = 1024; s <= (1LL << 34); s *= 2) {
        const Time t = collective_time(m, kind, Bytes(s), g).time;
        INFO(to_string(kind), " ", g.ranks, " ranks on ", g.nodes, " nodes, ", s, " bytes");
        CHECK(t.seconds() >= last.seconds() * 0.9);  // switching algorithm may gain a little
        last = t;
      }
    }
  }
}

TEST_CASE("collectives: one rank or nothing to send costs nothing") {
  const CommModel m = model("h100_sxm");
  CHECK(collective_time(m, Collective::all_reduce, Bytes::gib(1), comm_group(1, 8)).time == Time());
  CHECK(collective_time(m, Collective::all_gather, Bytes(0), comm_group(8, 8)).time == Time());
}

TEST_CASE("collectives: dense all_to_all between nodes is bound by the NIC of each GPU") {
  const CommModel m = model("h100_sxm");
  const double rate = bus_GBps(m, Collective::all_to_all, Bytes::gib(4), comm_group(32, 8));
  CHECK(rate == doctest::Approx(42.5 * 31 / 24).epsilon(0.02));
}

TEST_CASE("collectives: a message between nodes costs a latency and one NIC") {
  const CommModel m = model("h100_sxm");
  const CollectiveTime t = collective_time(m, Collective::send_recv, Bytes::mib(64), comm_group(2, 1));
  CHECK(t.time.microseconds() == doctest::Approx(12 + 64 * 1.048576e6 / 45.5e3).epsilon(0.01));
}

TEST_CASE("collectives: every shipped profile loads and answers") {
  for (const char* gpu : {"a100_sxm", "h100_sxm", "h800_sxm", "h200_sxm", "h20", "b200_sxm", "gb200"}) {
    CAPTURE(gpu);
    const CommModel m = model(gpu);
    CHECK(m.name == gpu);
    const CollectiveTime t = collective_time(m, Collective::all_gather, Bytes::mib(256), comm_group(8, 8));
    CHECK(t.time > Time::us(100));
    CHECK(t.provenance < Provenance::datasheet);
    CHECK(t.sms > 0);
  }
}

TEST_CASE("collectives: a missing profile is a ConfigError") {
  CHECK_THROWS_AS(model("h1000"), ConfigError);
}
