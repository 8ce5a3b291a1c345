// Registry of dispatchers (an explicit array, names as in the scenario's moe.dispatcher) and the sums over one layer.
// Source: k3-facts sections 3.6 (exchanges of a layer) and 3.7 (largest sender on the critical path).
// Valid for results of one dispatcher.
#include "models/moe/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/moe/dispatch_traffic.h"
#include "models/moe/dispatchers.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

std::int64_t DispatchResult::max_rows() const {
  std::int64_t most = 0;
  for (const RankDispatch& r : ranks) most = std::max(most, r.rows);
  return most;
}

Bytes DispatchResult::max_buffer() const {
  Bytes most;
  for (const RankDispatch& r : ranks) most = std::max(most, r.buffer);
  return most;
}

std::span<const Dispatcher> dispatchers() {
  static constexpr std::array<Dispatcher, 10> kDispatchers{{
      {"alltoall", dispatch_alltoall},
      {"alltoall_drop", dispatch_alltoall_drop},
      {"allgather", dispatch_allgather},
      {"deepep", dispatch_deepep},
      {"deepep_v2", dispatch_deepep_v2},
      {"copy_free", dispatch_copy_free},
      {"moonep", dispatch_moonep},
      {"moonep_tolerance", dispatch_moonep_tolerance},
      {"moonep_hierarchical", dispatch_moonep_hierarchical},
      {"eplb", dispatch_eplb},
  }};
  return kDispatchers;
}

const Dispatcher& find_dispatcher(std::string_view name, const std::string& key) {
  std::vector<std::string> known;
  std::string list;
  for (const Dispatcher& d : dispatchers()) {
    if (d.name == name) return d;
    known.emplace_back(d.name);
    list += (list.empty() ? "" : ", ") + known.back();
  }
  Problem p;
  p.key = key;
  p.what = fmt::format("unknown dispatcher '{}'; known are {}", name, list);
  p.hint = did_you_mean(name, known);
  throw ConfigError(std::vector<Problem>{p});
}

DispatchResult result_at_home(const DispatchWorkload& w) {
  DispatchResult out;
  out.ranks.resize(static_cast<std::size_t>(w.counts.ranks));
  const std::vector<std::int64_t> rows = w.counts.per_expert();
  const std::ptrdiff_t epn = w.counts.experts_per_rank();
  for (std::size_t r = 0; r < out.ranks.size(); ++r) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(r) * epn;
    out.ranks[r].group_rows.assign(begin, begin + epn);
  }
  count_rows(out, w.pad_rows);
  return out;
}

LayerExchange layer_exchange(const DispatchResult& result, bool redispatch_in_backward) {
  const DispatchTimes& t = result.time;
  const Time dispatch = t.dispatch + t.dispatch_local, combine = t.combine + t.combine_local;
  LayerExchange x;
  x.forward = t.plan + dispatch + combine;
  x.backward = dispatch + combine;  // each backward takes its forward's time (k3-facts section 3.8)
  if (redispatch_in_backward) x.backward += dispatch;
  return x;
}

}  // namespace k3sim
