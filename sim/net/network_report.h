// What the network did, for reports: bytes and peak utilisation per class of links, the hottest links, time lost.
// Source: issue on the network; hardware notes 2 (link classes).
#pragma once

#include <string>
#include <vector>

#include "sim/net/flow_engine.h"
#include "sim/net/topology.h"

namespace k3sim {

struct LinkClassUsage {
  LinkClass kind = LinkClass::nvlink;
  std::size_t links = 0, used = 0;
  double bytes = 0;             // over all links of the class
  double peak_utilisation = 0;  // of the most loaded link, 0 ... 1
  double mean_utilisation = 0;  // of the used links over the whole run
};
struct HotLink {
  std::string name;
  double bytes = 0;
  double peak_utilisation = 0;
  double mean_utilisation = 0;
  std::size_t alike = 1;  // links with exactly this load, itself included
};
struct NetworkReport {
  std::vector<LinkClassUsage> classes;
  std::vector<HotLink> hottest;  // by bytes / capacity, then by id
  double seconds_lost = 0;       // sum over flows of the time beyond that at their own bound
  FlowEngineStats stats;
};

// Requires: an engine that recorded usage over this topology's links.
NetworkReport network_report(const Topology& topology, const FlowEngine& engine, Time duration,
                             std::size_t hottest = 10);

}  // namespace k3sim
