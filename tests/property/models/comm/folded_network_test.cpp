// Folding on the network: when equal ranks see equal networks, simulating the groups of one rank with the links of that
// rank gives the same times, to the picosecond, as simulating everybody.
#include <doctest/doctest.h>

#include <map>

#include "models/comm/collective_flows.h"
#include "models/comm/fabric_loader.h"
#include "models/config/data_files.h"
#include "sim/net/network_report.h"
#include "sim/net/topology_checks.h"

using namespace k3sim;

namespace {

struct Traffic {
  Time start;
  FlowPlan plan;
  bool of_rank_zero = false;
};

constexpr int kNodes = 32, kPerNode = 8, kEp = 64;

// Three kinds of traffic that overlap on NICs and NVLink: expert exchange, gradient reduction and messages.
std::vector<Traffic> traffic(const Topology& t, LinkLoads& loads, bool folded) {
  const CommModel m = load_comm_model(data_path("hardware_profiles/collectives/h800_sxm.yaml"));
  const Router router(t);
  std::vector<Traffic> out;
  const auto add = [&](Time start, Collective kind, Bytes size, const std::vector<int>& gpus) {
    const bool zero = gpus.front() == 0;
    if (folded && !zero) return;
    out.push_back({start, collective_flows(m, router, t, kind, size, place_group(t, gpus), loads), zero});
  };
  for (int first = 0; first < kNodes * kPerNode; first += kEp) {
    std::vector<int> gpus;
    for (int r = 0; r < kEp; ++r) gpus.push_back(first + r);
    add(Time::us(50), Collective::all_to_all, Bytes::mib(300), gpus);
    add(Time::us(900), Collective::all_to_all, Bytes::mib(200), gpus);
  }
  for (int r = 0; r < kEp; ++r) {
    std::vector<int> gpus;
    for (int g = r; g < kNodes * kPerNode; g += kEp) gpus.push_back(g);
    add(Time::us(120), Collective::reduce_scatter, Bytes::mib(700), gpus);
  }
  for (int node = 0; node < kNodes; ++node) {
    std::vector<int> gpus;
    for (int g = 0; g < kPerNode; ++g) gpus.push_back(node * kPerNode + g);
    add(Time::us(200), Collective::all_gather, Bytes::mib(500), gpus);
  }
  return out;
}

// Completion times of the plans of rank 0, in order of the traffic list.
std::vector<Time> run(const Topology& t, const std::vector<Traffic>& all, NetworkReport* report = nullptr) {
  std::vector<FlowPlan> plans;
  std::multimap<Time, std::size_t> starts;
  for (std::size_t i = 0; i < all.size(); ++i) plans.push_back(all[i].plan), starts.emplace(all[i].start, i);
  const auto capacities = t.capacities();
  const NetworkWork work = one_job_per_task(plans);
  NetworkProgress network(capacities, work);
  if (report != nullptr) network.engine().record_usage();
  std::vector<Time> finish(all.size());
  std::vector<TaskId> done;
  Time now;
  while (true) {
    const Time next =
        starts.empty() ? network.next_completion() : std::min(network.next_completion(), starts.begin()->first);
    if (next == Time::max()) break;
    now = next;
    done.clear();
    network.advance(now, done);
    for (TaskId d : done) finish[d.value] = now;
    for (; !starts.empty() && starts.begin()->first == now; starts.erase(starts.begin())) {
      network.start(TaskId(starts.begin()->second), Time(), now);
    }
  }
  if (report != nullptr) *report = network_report(t, network.engine(), now);
  std::vector<Time> mine;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].of_rank_zero) mine.push_back(finish[i]);
  }
  return mine;
}

}  // namespace

TEST_CASE("folded network: one rank's links give the same times as all ranks, to the picosecond") {
  const ClusterSpec spec = load_cluster({.gpu = "h800_sxm", .nodes = kNodes});
  REQUIRE(!reason_to_unfold(spec));
  const Topology t = build_topology(spec);
  LinkLoads all(t.links.size()), own(t.links.size());
  const int zero[] = {0};
  own.keep_only(links_of_gpus(t, zero));
  const auto unfolded = run(t, traffic(t, all, false));
  const auto few = traffic(t, own, true);
  const auto folded = run(t, few);
  REQUIRE(unfolded.size() == 4);
  for (std::size_t i = 0; i < unfolded.size(); ++i) CHECK(folded[i].picoseconds() == unfolded[i].picoseconds());
  for (const Traffic& x : few) CHECK(x.plan.stages.front().flows.front().path.size() < 40);
}

TEST_CASE("folded network: on an oversubscribed fabric folding would be wrong, and is refused") {
  const ClusterSpec spec = load_cluster({.gpu = "h800_sxm", .nodes = 64, .oversubscription = 4});
  CHECK(reason_to_unfold(spec));
}

TEST_CASE("network report: bytes are those sent, the sharing of NICs shows as lost time and as full links") {
  const Topology t = build_topology(load_cluster({.gpu = "h800_sxm", .nodes = kNodes}));
  LinkLoads loads(t.links.size());
  NetworkReport report;
  run(t, traffic(t, loads, false), &report);
  double nic = 0, peak = 0;
  for (const LinkClassUsage& c : report.classes) {
    if (c.kind == LinkClass::nic) nic = c.bytes, peak = c.peak_utilisation;
  }
  const double mib = 1048576;
  const double a2a = 500 * mib * 56 / 64, rs = 700 * mib * 3 / 4;
  CHECK(nic == doctest::Approx(2 * 256 * (a2a + rs)).epsilon(1e-6));  // out of and into every NIC
  CHECK(peak == doctest::Approx(1.0));
  CHECK(report.seconds_lost > 0);
  CHECK(report.hottest.size() == 10);
  CHECK(report.hottest.front().mean_utilisation >= report.hottest.back().mean_utilisation);
}
