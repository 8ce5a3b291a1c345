// Peaks, attribution and advice from an emulated request log. See memory_log.h.
// Source: engine-design section 10 (peak attribution: who was alive at the peak).
#include <fmt/format.h>

#include <algorithm>

#include "models/build/memory_log.h"

namespace k3sim {

namespace {

std::vector<std::string> category_names() {
  std::vector<std::string> names;
  for (int c = 0; c < kMemoryCategories; ++c) names.emplace_back(to_string(static_cast<MemoryCategory>(c)));
  return names;
}

std::string describe(const StepPlan& plan, const MemoryPlace& p) {
  std::string text;
  if (p.stage >= 0 && p.part >= 0) {
    const Chunk& c = plan.chunks[static_cast<std::size_t>(plan.schedule.model_stage(p.stage))];
    const ChunkPart& part = c.parts[static_cast<std::size_t>(p.part)];
    text = part.kind == ChunkPart::Kind::embedding ? "embedding "
           : part.kind == ChunkPart::Kind::head    ? "head "
           : part.kind == ChunkPart::Kind::mtp     ? "MTP layer "
                                                   : fmt::format("layer {} ", part.layer);
  } else if (p.stage >= 0) {
    text = fmt::format("stage {} ", p.stage);
  }
  text += p.name;
  if (p.microbatch >= 0) text += fmt::format(" of micro-batch {}", p.microbatch);
  return text;
}

std::vector<LivePart> live_parts(const StepPlan& plan, const MemoryLog& log, const std::vector<LiveAllocation>& live) {
  std::vector<LivePart> out;
  for (const LiveAllocation& a : live)
    out.push_back({describe(plan, log.places[a.tag]), static_cast<MemoryCategory>(a.category), a.bytes});
  return out;
}

Bytes share(Bytes bytes, double part) {
  return Bytes::ceil(bytes.as_double() * part);
}

std::string action_at(const MemoryLog& log, std::size_t request) {
  const auto it = std::upper_bound(log.action_ends.begin(), log.action_ends.end(), request);
  if (it != log.action_ends.end())
    return to_string(log.actions[static_cast<std::size_t>(it - log.action_ends.begin())]);
  return "optimizer step";
}

// One settings change and the bytes that it would free at the peak, from the amounts by category.
std::vector<std::string> advice(const StepPlan& plan, const MemoryReport& r) {
  const Scenario& s = plan.scenario;
  const auto at = [&](MemoryCategory c) { return r.timeline.breakdown[static_cast<std::size_t>(c)].at_peak; };
  struct Knob {
    Bytes saves;
    std::string text;
  };
  std::vector<Knob> knobs;
  const auto offer = [&](Bytes saves, const std::string& text) {
    if (saves.gibibytes() >= 0.1)
      knobs.push_back({saves, fmt::format("{} (saves about {:.1f} GiB)", text, saves.gibibytes())});
  };
  const Bytes activations = at(MemoryCategory::activations);
  if (s.activation.policy != "full") offer(share(activations, 0.8), "activation.policy: full");
  if (!s.activation.offload && s.activation.policy != "unified")
    offer(share(activations, 0.7), "activation.offload: true");
  const int shards = plan.placement->group(GroupKind::dp).ranks;
  const double kept = shards > 1 ? 1.0 - 1.0 / shards : 0.0;
  if (s.optimizer.zero < 1) offer(share(at(MemoryCategory::optimizer), kept), "optimizer.zero: 1");
  const double chunks = s.parallel.vpp;
  if (s.optimizer.zero < 2 && chunks > 2)
    offer(share(at(MemoryCategory::gradients), std::max(0.0, kept - 2 / chunks)), "optimizer.zero: 2");
  if (!reduces_by_chunk(plan) && s.optimizer.zero < 3 && chunks > 2)
    offer(share(at(MemoryCategory::gradients), 1 - 2 / chunks), "optimizer.gradient_shards: cpu");
  if (s.optimizer.states != "cpu") offer(at(MemoryCategory::optimizer), "optimizer.states: cpu");
  if (s.batch.micro_batch > 1)
    offer(share(activations, 0.5), fmt::format("batch.micro_batch: {}", s.batch.micro_batch / 2));
  const Bytes unused = r.peak_reserved > r.peak_allocated ? r.peak_reserved - r.peak_allocated : Bytes(0);
  if (s.memory.allocator != "expandable") offer(share(unused, 0.7), "memory.allocator: expandable");
  std::stable_sort(knobs.begin(), knobs.end(), [](const Knob& a, const Knob& b) { return a.saves > b.saves; });
  std::vector<std::string> out;
  for (const Knob& k : knobs) out.push_back(k.text);
  return out;
}

void add_details(const StepPlan& plan, const MemoryLog& log, const AllocatorResult& result, std::size_t points,
                 MemoryReport& r) {
  r.timeline =
      build_timeline(log.requests, result, {.categories = category_names(), .max_points = points, .max_live = 20});
  r.peak_at = action_at(log, r.timeline.peak_request);
  r.at_peak = live_parts(plan, log, r.timeline.at_peak);
  r.at_failure = live_parts(plan, log, r.timeline.at_failure);
  r.knobs = advice(plan, r);
}

}  // namespace

MemoryReport memory_report(const StepPlan& plan, const Machine& machine, int rank, const MemoryReportOptions& options) {
  MemoryLog log = memory_log(plan, machine.software, rank, options.walk);
  const Bytes capacity = plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
  DeviceMemory device{.total = std::max(capacity, Bytes::gib(1))};
  if (options.available.count() > 0) device.available = options.available;
  const AllocatorResult result = emulate(log.requests, allocator_policy(plan.scenario, machine.software), device);
  MemoryReport r;
  r.rank = rank;
  r.capacity = capacity;
  r.peak_allocated = result.peak_allocated();
  r.peak_reserved = result.peak_reserved();
  r.requests = log.requests.size();
  r.retries = result.counters.retries;
  if (result.out_of_memory) {
    const OutOfMemory& o = *result.out_of_memory;
    const std::uint32_t tag = log.requests.requests()[o.request].tag;
    r.out_of_memory =
        fmt::format("{} asks for {:.2f} GiB in {} with {:.2f} GiB allocated, {:.2f} GiB reserved of {:.2f} GiB",
                    describe(plan, log.places[tag]), o.asked.gibibytes(), action_at(log, o.request),
                    o.allocated.gibibytes(), o.reserved.gibibytes(), o.available.gibibytes());
  }
  if (options.details) add_details(plan, log, result, options.curve_points, r);
  r.action_ends = std::move(log.action_ends);
  r.actions = std::move(log.actions);
  return r;
}

}  // namespace k3sim
