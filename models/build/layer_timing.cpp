// Prices a layer program item by item and applies the activation policy. Source: program.h (order and lanes);
// k3-facts 2.4 (FP8 storage: 1 x 128 tiles with FP32 scales).
#include "models/build/layer_timing.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {

double software_efficiency(const Kernel& k, const SoftwareProfile& s) {
  switch (k.family) {
    case KernelFamily::gemm:
    case KernelFamily::grouped_gemm:
    case KernelFamily::newton_schulz:
      return is_fp8(k.dtype) ? s.matmul_efficiency * s.fp8_efficiency : s.matmul_efficiency;
    case KernelFamily::attention:
    case KernelFamily::kda:
    case KernelFamily::kda_prepass:
      return s.attention_efficiency;
    default:
      return s.memory_efficiency;
  }
}

namespace {

bool follows_routing(const Item& item) {
  if (!item.is_comm) return item.kernel.routed;
  return item.comm.kind == CommKind::dispatch || item.comm.kind == CommKind::combine;
}

// Times a list of items; those that follow the routing are kept in the layer as well.
std::vector<TimedItem> time_items(const std::vector<Item>& items, const TimingOptions& options, const Machine& machine,
                                  const CommCoster& comm, TimedLayer& layer) {
  std::vector<TimedItem> out;
  for (const Item& item : items) {
    out.push_back(time_item(item, options, machine, comm));
    if (!follows_routing(item)) continue;
    out.back().routed = static_cast<std::int16_t>(layer.routed.size());
    layer.routed.push_back(item);
  }
  return out;
}

// Hides tensor-parallel collectives behind the GEMM next to them (all-gather: the one after, else the one before).
void overlap_tensor_parallel(std::vector<TimedItem>& items, int tp) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_comm || items[i].lane != Lane::tp_comm) continue;
    Time gemm;
    for (std::size_t j : {i + 1, i - 1})
      if (j < items.size() && !items[j].is_comm && items[j].family == KernelFamily::gemm)
        gemm = std::max(gemm, items[j].time);
    const Time share = scale(items[i].time, 1.0 / tp);
    const Time hidden = scale(gemm, static_cast<double>(tp - 1) / tp);
    const Time left = items[i].time > hidden ? items[i].time - hidden : Time();
    const Time exposed = std::max(share, left);
    if (items[i].time > Time()) shrink(items[i].traffic, exposed / items[i].time);
    items[i].time = exposed;
  }
}

// Keeps the items for which keep(item); dependencies on dropped items move to the nearest kept item before them.
template <class Keep>
std::vector<TimedItem> filter(const std::vector<TimedItem>& items, const Keep& keep) {
  std::vector<TimedItem> out;
  std::vector<int> kept_up_to(items.size(), -1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (keep(items[i])) {
      TimedItem item = items[i];
      item.after.clear();
      for (std::uint16_t a : items[i].after)
        if (kept_up_to[a] >= 0) item.after.push_back(static_cast<std::uint16_t>(kept_up_to[a]));
      out.push_back(std::move(item));
    }
    kept_up_to[i] = static_cast<int>(out.size()) - 1;
  }
  return out;
}

void append(std::vector<TimedItem>& out, const std::vector<TimedItem>& items) {
  const std::size_t base = out.size();
  for (TimedItem item : items) {
    for (std::uint16_t& a : item.after) a = static_cast<std::uint16_t>(a + base);
    out.push_back(std::move(item));
  }
}

TimedPass finish(std::vector<TimedItem> items) {
  TimedPass pass;
  pass.items = std::move(items);
  pass.summary = summarize(pass.items);
  return pass;
}

StoragePolicy storage_policy(const RecomputePolicy& policy, const SoftwareProfile& software) {
  StoragePolicy s;
  s.full = policy.full;
  s.half_products = policy.half_products;
  s.fp8 = policy.fp8;
  s.offload = policy.offload;
  s.wide_inputs = software.fp8_keeps_wide_inputs;
  s.modules = policy.modules;
  s.rules = policy.rules;
  return s;
}

// Of program.saved. Per-operator checkpoints are counted by their events alone (models/memory).
std::vector<TensorTreatment> treatments(const LayerProgram& program, const RecomputePolicy& policy,
                                        const SoftwareProfile& software) {
  StoragePolicy storage = storage_policy(policy, software);
  storage.half_products = false;
  std::vector<TensorTreatment> out;
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& t = program.saved[i];
    // Full recompute keeps the layer input alone; programs list it as the first saved tensor.
    out.push_back(treatment_of(storage, {t.name, t.module, t.dtype, t.recomputable, policy.full && i == 0}));
  }
  return out;
}

// Modules that run again in backward: the preset's, and those that make a tensor which a rule drops.
std::vector<TimedItem> replay_items(const LayerProgram& program, const std::vector<TimedItem>& forward,
                                    const RecomputePolicy& policy, const std::vector<TensorTreatment>& treated) {
  std::array<bool, kModules> again = policy.modules;
  if (!policy.rules.empty()) {
    std::array<bool, kModules> dropped{}, holds{};
    for (std::size_t i = 0; i < treated.size(); ++i) {
      const auto m = static_cast<std::size_t>(program.saved[i].module);
      holds[m] = true;
      dropped[m] = dropped[m] || treated[i].recompute;
    }
    // A module whose tensors all stay after all is not run again.
    for (std::size_t m = 0; m < again.size(); ++m) again[m] = holds[m] ? dropped[m] : again[m];
  }
  std::vector<TimedItem> replay = filter(
      forward, [&](const TimedItem& item) { return policy.full || again[static_cast<std::size_t>(item.module)]; });
  for (TimedItem& item : replay) item.recompute = true;
  return replay;
}

Bytes stored(const SavedTensor& t, const TensorTreatment& treated) {
  return treated.fp8 ? fp8_tile_bytes(t.bytes) : t.bytes;
}

void account_memory(const LayerProgram& program, const std::vector<TensorTreatment>& treated, TimedLayer& layer) {
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& t = program.saved[i];
    const TensorTreatment& how = treated[i];
    // What was dropped, shrunk or sent away is alive at full size while its layer runs backward.
    if (how != TensorTreatment{}) layer.replayed += t.bytes;
    if (how.recompute) continue;
    Bytes& where = how.place == StoragePlace::host     ? layer.offloaded
                   : how.place == StoragePlace::remote ? layer.remote
                                                       : layer.saved;
    where += stored(t, how);
  }
}

// Storing as FP8 reads two bytes and writes one and a scale per value; restoring does the reverse.
TimedItem fp8_storage_item(const LayerProgram& program, const std::vector<TensorTreatment>& treated,
                           const Machine& machine, bool restore) {
  Bytes moved;
  for (std::size_t i = 0; i < program.saved.size(); ++i)
    if (treated[i].fp8) moved += program.saved[i].bytes + stored(program.saved[i], treated[i]);
  Kernel k = memory_kernel(restore ? "fp8_restore" : "fp8_store", Pass::forward, MemoryClass::quantize, moved);
  TimedItem item;
  item.name = k.name;
  item.module = Module::residual;
  item.pass = restore ? Pass::input_grad : Pass::forward;
  const KernelTime t = machine.cost->time(k);
  item.time = moved.count() == 0 ? Time() : t.time;
  item.provenance = t.provenance;
  return item;
}

}  // namespace

PassSummary summarize(const std::vector<TimedItem>& items) {
  PassSummary s;
  std::array<Time, kLanes> lane_free{};
  std::vector<Time> finish_at(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TimedItem& item = items[i];
    const auto lane = static_cast<std::size_t>(item.lane);
    Time ready;
    std::size_t cause = i;
    const auto wait = [&](std::size_t j) {
      if (finish_at[j] > ready) ready = finish_at[j], cause = j;
    };
    if (item.after.empty() && i > 0) wait(i - 1);
    for (std::uint16_t a : item.after) wait(a);
    const Time start = std::max(ready, lane_free[lane]);
    if (item.lane == Lane::compute && start > lane_free[lane])
      s.exposed[static_cast<std::size_t>(items[cause].lane)] += start - lane_free[lane];
    finish_at[i] = start + item.time;
    lane_free[lane] = finish_at[i];
    if (item.lane == Lane::compute) s.compute += item.time;
    if (item.lane == Lane::compute && item.recompute) s.recompute += item.time;
    if (!item.is_comm) s.launches += item.launches;
    s.elapsed = std::max(s.elapsed, finish_at[i]);
  }
  // What runs after the last compute item is exposed as well.
  for (std::size_t i = items.size(); i-- > 0;) {
    if (finish_at[i] != s.elapsed) continue;
    if (items[i].lane != Lane::compute) s.exposed[static_cast<std::size_t>(items[i].lane)] += s.elapsed - lane_free[0];
    break;
  }
  return s;
}

TimedItem time_item(const Item& item, const TimingOptions& options, const Machine& machine, const CommCoster& comm) {
  TimedItem out;
  out.name = item.name;
  out.lane = item.lane == Lane::side && !options.side_stream ? Lane::compute : item.lane;
  out.module = item.module;
  out.pass = item.pass;
  out.is_comm = item.is_comm;
  out.after = item.after;
  if (item.is_comm) {
    const CommCost c = comm.time(item.comm);
    out.group = item.comm.group;
    out.comm = item.comm.kind;
    out.buffer = item.comm.bytes;
    out.time = c.time;
    out.provenance = c.provenance;
    out.network = c.network;
    out.nvlink = c.nvlink;
    out.traffic = c.traffic;
    out.push = c.push;
  } else {
    const KernelTime t = machine.cost->time(item.kernel);
    out.family = item.kernel.family;
    out.time = scale(t.time, options.compute_scale / software_efficiency(item.kernel, machine.software));
    out.provenance = t.provenance;
    out.p95_ratio = t.p95_ratio;
    out.flops = item.kernel.flops;
    out.launches = item.kernel.launches;
  }
  return out;
}

TimedLayer time_layer(const LayerProgram& program, const RecomputePolicy& policy, const TimingOptions& options,
                      const Machine& machine, const CommCoster& comm) {
  TimedLayer layer;
  std::vector<TimedItem> forward = time_items(program.forward, options, machine, comm, layer);
  std::vector<TimedItem> backward = time_items(program.backward, options, machine, comm, layer);
  if (options.tp_overlap && options.tp > 1) {
    overlap_tensor_parallel(forward, options.tp);
    overlap_tensor_parallel(backward, options.tp);
  }
  const std::vector<TensorTreatment> treated = treatments(program, policy, machine.software);
  const std::vector<TimedItem> replay = replay_items(program, forward, policy, treated);
  if (std::any_of(treated.begin(), treated.end(), [](const TensorTreatment& t) { return t.fp8; })) {
    forward.push_back(fp8_storage_item(program, treated, machine, false));
    backward.insert(backward.begin(), fp8_storage_item(program, treated, machine, true));
    for (std::size_t i = 1; i < backward.size(); ++i)
      for (std::uint16_t& a : backward[i].after) ++a;
  }
  const auto is_weight = [](const TimedItem& i) { return i.pass == Pass::weight_grad; };
  std::vector<TimedItem> full = replay, input = replay;
  append(full, backward);
  append(input, filter(backward, [&](const TimedItem& i) { return !is_weight(i); }));
  layer.weight_grad = finish(filter(backward, is_weight));
  layer.input_grad = finish(std::move(input));
  layer.backward = finish(std::move(full));
  layer.forward = finish(std::move(forward));
  account_memory(program, treated, layer);
  layer.workspace = program.workspace;
  layer.boundary = program.boundary;
  layer.memory =
      std::make_shared<const LayerEvents>(layer_events(*program.liveness, storage_policy(policy, machine.software)));
  return layer;
}

}  // namespace k3sim
