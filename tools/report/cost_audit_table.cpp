#include "tools/report/cost_audit_table.h"

#include <algorithm>
#include <map>

#include "tools/report/csv.h"

namespace k3sim {

namespace {

struct Work {
  double seconds = 0, seconds_p95 = 0, launches = 0, flops = 0;
  double nvlink = 0, network = 0;
  Provenance tier = Provenance::measured;
};

const char* lane_name(Lane lane) {
  switch (lane) {
    case Lane::tp_comm:
      return "tp communication";
    case Lane::cp_comm:
      return "cp communication";
    default:
      return "ep communication";
  }
}

// Visits every timed item of the step with the number of times one rank (mean over ranks) executes it.
template <class Visit>
void for_each_item(const StepPlan& plan, const Visit& visit) {
  const double times = static_cast<double>(plan.microbatches) / plan.schedule.ranks;
  for (const Chunk& c : plan.chunks)
    for (const ChunkPart& p : c.parts)
      for (const TimedPass* pass : {&p.timed->forward, &p.timed->backward})
        for (const TimedItem& i : pass->items) visit(i, times);
}

using WorkByName = std::map<std::string, Work>;

WorkByName collect(const StepPlan& plan, bool only_comm) {
  WorkByName out;
  for_each_item(plan, [&](const TimedItem& i, double times) {
    if (only_comm && !i.is_comm) return;
    Work& w = out[i.is_comm ? (only_comm ? i.name : lane_name(i.lane)) : to_string(i.family)];
    w.seconds += i.time.seconds() * times;
    w.seconds_p95 += i.time.seconds() * times * i.p95_ratio;
    w.launches += i.launches * times;
    w.flops += i.flops.value() * times;
    w.nvlink += i.nvlink.as_double() * times;
    w.network += i.network.as_double() * times;
    w.tier = worst(w.tier, i.provenance);
  });
  return out;
}

std::vector<std::pair<std::string, Work>> largest_first(const WorkByName& by_name) {
  std::vector<std::pair<std::string, Work>> out(by_name.begin(), by_name.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  return out;
}

}  // namespace

PageTable cost_table(const StepPrediction& p) {
  PageTable t{"costs",
              "What the time rests on: work of one GPU in one step, mean over pipeline ranks, overlapped work included",
              "prediction; tiers from the hardware profile",
              {{"name", "kernels and collectives", "", "kernel family, or collectives of one group", true},
               {"time_s", "time", "s", "busy time per step"},
               {"share_pct", "share", "%", "of all listed work"},
               {"launches", "launches", "1", "kernels per step"},
               {"rate", "rate", "TFLOP/s", "matrix work over time"},
               {"tier", "origin", "", "worst tier of a cost used", true},
               {"p95_ratio", "95 % below", "x", "95th percentile of measured over predicted time"}},
              {}};
  double total = 0;
  const WorkByName work = collect(*p.plan, false);
  for (const auto& [name, w] : work) total += w.seconds;
  for (const auto& [name, w] : largest_first(work))
    t.rows.push_back({name, csv_number(w.seconds), csv_number(100.0 * w.seconds / total), csv_number(w.launches),
                      w.flops > 0 ? csv_number(w.flops / w.seconds / kTera) : "", to_string(w.tier),
                      w.seconds > 0 ? csv_number(w.seconds_p95 / w.seconds) : ""});
  return t;
}

PageTable network_table(const StepPrediction& p) {
  PageTable t{"network",
              "Bytes that one GPU sends per step, by collective and link class, mean over pipeline ranks",
              "prediction",
              {{"name", "collective", "", "what is exchanged", true},
               {"time_s", "time", "s", "busy time per step, hidden or not"},
               {"nvlink_gb", "NVLink", "GB", "10^9 bytes within the node"},
               {"nic_gb", "NIC", "GB", "10^9 bytes between nodes"},
               {"nvlink_rate", "NVLink rate", "GB/s", "while the collective runs"},
               {"nic_rate", "NIC rate", "GB/s", "while the collective runs"}},
              {}};
  for (const auto& [name, w] : largest_first(collect(*p.plan, true))) {
    const auto rate = [&, time = w.seconds](double bytes) {
      return bytes > 0 && time > 0 ? csv_number(bytes / time / kGB) : std::string();
    };
    t.rows.push_back({name, csv_number(w.seconds), csv_number(w.nvlink / kGB), csv_number(w.network / kGB),
                      rate(w.nvlink), rate(w.network)});
  }
  return t;
}

}  // namespace k3sim
