// Times the routed items of a layer again. Source: routed_layer.h.
#include "models/build/routed_layer.h"

#include <algorithm>
#include <cmath>

namespace k3sim {

namespace {

// What a draw changes of an item: how long it takes and what it moves.
void take_load(TimedItem& item, const TimedItem& loaded) {
  item.time = loaded.time;
  item.flops = loaded.flops;
  item.network = loaded.network;
  item.nvlink = loaded.nvlink;
  item.traffic = loaded.traffic;
  item.push = loaded.push;
}

TimedPass with_loads(const TimedPass& pass, const std::vector<TimedItem>& loaded) {
  TimedPass out;
  out.items = pass.items;
  for (TimedItem& item : out.items)
    if (item.routed >= 0) take_load(item, loaded[static_cast<std::size_t>(item.routed)]);
  out.summary = summarize(out.items);
  return out;
}

TimedPasses with_loads(const TimedLayer& layer, const std::vector<TimedItem>& loaded) {
  return {with_loads(layer.forward, loaded), with_loads(layer.backward, loaded), with_loads(layer.input_grad, loaded),
          with_loads(layer.weight_grad, loaded)};
}

}  // namespace

// The kernel was made for the mean of the busiest ranks' rows.
Kernel LayerRouter::loaded(const Kernel& kernel, const EpRankLoad& load) const {
  const double ratio = load.row_ratio / effects_.row_ratio;
  Kernel k = kernel;
  k.flops = Flops(kernel.flops.value() * ratio);
  if (kernel.family != KernelFamily::grouped_gemm) {
    k.bytes = Bytes::ceil(kernel.bytes.as_double() * ratio);
    return k;
  }
  k.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(kernel.m) * ratio));
  k.groups = static_cast<std::int64_t>(std::max<std::size_t>(1, load.group_rows.size()));
  k.group_rows = load.group_rows.empty() ? nullptr : &load.group_rows;
  k.bytes = grouped_gemm_kernel(k.name, k.pass, k.dtype, k.groups, k.m, k.n, k.k).bytes;
  return k;
}

std::vector<TimedItem> LayerRouter::loaded_items(const TimedLayer& layer, const MoeDraw& draw, int ep_rank) const {
  const EpRankLoad& load = draw.ranks[ep_rank == kBusiestRank ? draw.busiest : static_cast<std::size_t>(ep_rank)];
  CommCoster comm = comm_;
  comm.set_moe(effects_.of(draw));
  std::vector<TimedItem> out;
  for (const Item& item : layer.routed) {
    Item again = item;
    if (!item.is_comm) again.kernel = loaded(item.kernel, load);
    out.push_back(time_item(again, options_, machine_, comm));
  }
  return out;
}

TimedPasses LayerRouter::passes(const TimedLayer& layer, const MoeDraw& draw, int ep_rank) const {
  return with_loads(layer, loaded_items(layer, draw, ep_rank));
}

TimedPasses LayerRouter::least(const TimedLayer& layer) const {
  std::vector<TimedItem> lowest;
  for (const MoeDraw& draw : effects_.draws->draws) {
    const std::vector<TimedItem> one = loaded_items(layer, draw, kBusiestRank);
    if (lowest.empty()) lowest = one;
    for (std::size_t i = 0; i < one.size(); ++i) lowest[i].time = std::min(lowest[i].time, one[i].time);
  }
  return with_loads(layer, lowest);
}

RoutedPasses::RoutedPasses(const LayerSet& layers, const Machine& machine, const CommCoster& comm)
    : effects_(layers.moe()), router_(effects_, layers.options(), machine, comm) {}

const TimedPasses& RoutedPasses::of(const ChunkPart& part, int micro_batch, int ep_rank) {
  if (!effects_.draws || !part.timed->moe || part.timed->routed.empty()) return *part.timed;
  const std::size_t draw = effects_.draws->index(part.layer, micro_batch);
  std::unique_ptr<TimedPasses>& made = made_[{part.timed, draw, ep_rank}];
  if (!made) made = std::make_unique<TimedPasses>(router_.passes(*part.timed, effects_.draws->draws[draw], ep_rank));
  return *made;
}

}  // namespace k3sim
