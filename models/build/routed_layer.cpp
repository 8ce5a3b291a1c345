// Times the routed items of a layer again. Source: routed_layer.h.
#include "models/build/routed_layer.h"

#include <algorithm>
#include <cmath>

namespace k3sim {

namespace {

// The same kernel or exchange, whatever it waits for.
bool same_work(const Item& a, const Item& b) {
  const auto shape = [](const Kernel& k) {
    return std::tuple(k.family, k.pass, k.dtype, k.memory_class, k.causal, k.name, k.m, k.n, k.k, k.groups,
                      k.largest_group, k.group_rows, k.choose_tile, k.routed, k.launches);
  };
  const auto core = [](const Kernel& k) {
    return std::tuple(k.batch, k.heads, k.kv_heads, k.seq_q, k.seq_k, k.dim_qk, k.dim_v, k.flops.value(), k.bytes);
  };
  const auto exchange = [](const CommOp& c) {
    return std::tuple(c.kind, c.group, c.bytes, c.tokens, c.topk, c.experts, c.groups, c.groups_chosen, c.row_bytes,
                      c.saved_plan);
  };
  const auto place = [](const Item& i) { return std::tuple(i.name, i.lane, i.module, i.pass, i.is_comm); };
  return place(a) == place(b) && shape(a.kernel) == shape(b.kernel) && core(a.kernel) == core(b.kernel) &&
         exchange(a.comm) == exchange(b.comm);
}

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

std::vector<TimedItem> LayerRouter::loaded_items(const std::vector<Item>& items, const MoeDraw& draw,
                                                 int ep_rank) const {
  const EpRankLoad& load = draw.ranks[ep_rank == kBusiestRank ? draw.busiest : static_cast<std::size_t>(ep_rank)];
  CommCoster comm = comm_;
  comm.set_moe(effects_.of(draw));
  std::vector<TimedItem> out;
  for (const Item& item : items) {
    Item again = item;
    if (!item.is_comm) again.kernel = loaded(item.kernel, load);
    out.push_back(time_item(again, options_, machine_, comm));
  }
  return out;
}

LayerRouter::RoutedWork& LayerRouter::work_of(const TimedLayer& layer) {
  for (RoutedWork& work : known_)
    if (std::equal(work.items.begin(), work.items.end(), layer.routed.begin(), layer.routed.end(), same_work))
      return work;
  known_.push_back({layer.routed, {}, {}});
  return known_.back();
}

TimedPasses LayerRouter::passes(const TimedLayer& layer, const MoeDraw& draw, int ep_rank) {
  RoutedWork& work = work_of(layer);
  std::vector<TimedItem>& loaded = work.loaded[{&draw, ep_rank}];
  if (loaded.empty()) loaded = loaded_items(work.items, draw, ep_rank);
  return with_loads(layer, loaded);
}

TimedPasses LayerRouter::least(const TimedLayer& layer) {
  RoutedWork& work = work_of(layer);
  if (!work.least.empty()) return with_loads(layer, work.least);
  for (const MoeDraw& draw : effects_.draws->draws) {
    const std::vector<TimedItem> one = loaded_items(work.items, draw, kBusiestRank);
    if (work.least.empty()) work.least = one;
    for (std::size_t i = 0; i < one.size(); ++i) work.least[i].time = std::min(work.least[i].time, one[i].time);
  }
  return with_loads(layer, work.least);
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
