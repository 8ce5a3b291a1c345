// See stage_memory.h. Source: engine-design section 10; the rules of memory_log_walk.h.
#include "models/build/stage_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/build/memory_log.h"
#include "models/build/memory_log_states.h"

namespace k3sim {

namespace {

// Adds up bytes per category; a layer pass is its change and its peak.
class CountingSink final : public MemorySink {
 public:
  explicit CountingSink(RankMemory& out) : out_(out) {}

  MemoryHandle alloc(Bytes bytes, MemoryCategory category, const MemoryPlace&) override {
    add(category, bytes);
    offer(Bytes(0));
    return {bytes, static_cast<MemoryId>(category)};
  }
  void free(const MemoryHandle& h) override { add(static_cast<MemoryCategory>(h.id), Bytes(-h.bytes.count())); }

  MemoryHandle run(const LayerCall& c) override {
    const PassEvents& p = events_of(c.layer, c.pass);
    const PassSize size =
        c.row_factor == 1.0 ? PassSize{p.peak, p.change} : pass_size(c.layer.tensors, p.events, c.row_factor);
    offer(size.peak);
    const bool forward = c.pass == LayerPass::forward;
    const int handed = forward ? kLayerOutput : p.input_gradient;
    // What comes in is the layer's from here on, and what goes out is the next one's: each is freed as what it is
    // counted as then.
    move(static_cast<MemoryCategory>(c.incoming.id), MemoryCategory::activations, c.incoming.bytes);
    add(MemoryCategory::activations, Bytes(size.change));
    events_ += p.events.size();
    if (handed < 0) return {};
    const Bytes bytes = c.layer.tensors[static_cast<std::size_t>(handed)].bytes;
    const MemoryCategory as = forward ? MemoryCategory::activations : MemoryCategory::activation_gradients;
    move(MemoryCategory::activations, as, bytes);
    return {bytes, static_cast<MemoryId>(as)};
  }

  void store(const LayerEvents& layer, LayerSlot&, bool out, const MemoryPlace&, double row_factor) override {
    std::int64_t bytes = layer.stored_bytes.count(), remote = layer.remote_bytes.count();
    for (const std::uint16_t t : layer.stored)
      bytes += size_of(layer.tensors[t], row_factor).count() - layer.tensors[t].bytes.count();
    if (bytes != layer.stored_bytes.count())
      remote = static_cast<std::int64_t>(static_cast<double>(remote) * static_cast<double>(bytes) /
                                         layer.stored_bytes.as_double());
    add(MemoryCategory::activations, Bytes(out ? -bytes : bytes));
    host_ += out ? bytes - remote : remote - bytes;
    remote_ += out ? remote : -remote;
    out_.host_activations = std::max(out_.host_activations, Bytes(host_));
    out_.remote_activations = std::max(out_.remote_activations, Bytes(remote_));
    offer(Bytes(0));
  }

  void lend(const LayerEvents& layer, LayerSlot&, const Lending& how, const MemoryPlace&) override {
    std::int64_t bytes = 0;
    for (const std::uint16_t t : layer.held)
      if (how.moves(layer, t)) bytes += layer.tensors[t].bytes.count();
    add(MemoryCategory::activations, Bytes(how.out ? -bytes : bytes));
    (how.to_host ? host_ : remote_) += how.out ? bytes : -bytes;
    out_.host_activations = std::max(out_.host_activations, Bytes(host_));
    out_.remote_activations = std::max(out_.remote_activations, Bytes(remote_));
    offer(Bytes(0));
  }

  void action_done(const Action& action) override {
    if (fresh_peak_) out_.peak_action = to_string(action);
    fresh_peak_ = false;
    MemoryStep step;
    step.after = activations();
    step.during = std::max(largest_, activations());
    step.peak = std::max(largest_total_, Bytes(total_));
    for (std::size_t c = 0; c < live_.size(); ++c) step.live[c] = Bytes(live_[c]);
    step.host = Bytes(host_);
    step.remote = Bytes(remote_);
    steps.push_back(step);
    largest_ = largest_total_ = Bytes(0);
  }

  // A peak after the last action is the optimizer's.
  void finish() {
    if (fresh_peak_) out_.peak_action = "optimizer step";
  }
  std::size_t events() const { return events_; }
  Bytes amount_of(MemoryCategory c) const { return Bytes(amount(c)); }
  std::vector<MemoryStep> steps;

 private:
  void add(MemoryCategory c, Bytes bytes) {
    live_[static_cast<std::size_t>(c)] += bytes.count();
    total_ += bytes.count();
  }
  void move(MemoryCategory from, MemoryCategory to, Bytes bytes) {
    add(from, Bytes(-bytes.count()));
    add(to, bytes);
  }
  std::int64_t amount(MemoryCategory c) const { return live_[static_cast<std::size_t>(c)]; }
  Bytes activations() const {
    return Bytes(amount(MemoryCategory::activations) + amount(MemoryCategory::activation_gradients));
  }

  void offer(Bytes transient) {
    largest_ = std::max(largest_, activations() + transient);
    largest_total_ = std::max(largest_total_, Bytes(total_) + transient);
    if (Bytes(total_) + transient <= out_.allocated) return;
    out_.allocated = Bytes(total_) + transient;
    out_.activations = activations();
    out_.transient = transient;
    out_.staging = Bytes(amount(MemoryCategory::gathered) + amount(MemoryCategory::weight_gradients) +
                         amount(MemoryCategory::exchange));
    fresh_peak_ = true;
  }

  RankMemory& out_;
  std::array<std::int64_t, kMemoryCategories> live_{};
  std::int64_t total_ = 0, host_ = 0, remote_ = 0;
  std::size_t events_ = 0;
  Bytes largest_, largest_total_;
  bool fresh_peak_ = false;
};

// Requests per micro-batch of the rank's chunks decide how many of them fit the limit.
int microbatch_limit(const StepPlan& plan, std::size_t events, std::size_t limit) {
  const auto all = static_cast<double>(std::max<std::int64_t>(1, plan.microbatches));
  const double keep = all * static_cast<double>(limit) / static_cast<double>(std::max<std::size_t>(1, 2 * events));
  // The steady state needs the warm-up of every schedule: twice the stages, and some micro-batches after it.
  const double least = 3.0 * plan.schedule.stages_per_chain() + 4;
  return static_cast<int>(std::min(all, std::max(keep, least)));
}

struct Counted {
  RankMemory memory;
  std::size_t events = 0;
};

Counted count(const StepPlan& plan, const Machine& machine, int rank) {
  Counted c;
  c.memory.rank = rank;
  c.memory.states = state_bytes(state_shape(plan, rank), plan.scenario.optimizer);
  CountingSink sink(c.memory);
  walk_memory(plan, machine.software, rank, {}, sink);
  sink.finish();
  c.memory.states.weights = sink.amount_of(MemoryCategory::weights);
  c.memory.states.gradients = sink.amount_of(MemoryCategory::gradients);
  c.memory.states.optimizer = sink.amount_of(MemoryCategory::optimizer);
  c.memory.partner_pool = sink.amount_of(MemoryCategory::remote_pool);
  c.events = sink.events();
  return c;
}

Bytes capacity_of(const StepPlan& plan, const Machine& machine) {
  return plan.scenario.cluster.memory_override.value_or(machine.gpu.usable_memory);
}

// What the allocator may reserve for the step's own requests.
Bytes room_of(const StepPlan& plan, const Machine& machine) {
  const Bytes taken = outside_allocator(plan, machine) + machine.software.workspace_memory;
  const Bytes capacity = capacity_of(plan, machine);
  return capacity > taken ? capacity - taken : Bytes(0);
}

struct Emulated {
  double overhead = 0;    // largest reserved over allocated - 1
  bool squeezed = false;  // the fullest rank fits because unused segments are given back
};

// Emulates the fullest ranks.
Emulated emulate_fullest(const StepPlan& plan, const Machine& machine, const MemoryOptions& options,
                         std::vector<Counted>& ranks) {
  std::vector<std::size_t> order(ranks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a].memory.allocated > ranks[b].memory.allocated; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(0, options.emulated_ranks))));
  Emulated out{order.empty() ? machine.software.fragmentation : 0.0, !order.empty()};
  const Bytes room = room_of(plan, machine);
  for (std::size_t i : order) {
    MemoryReportOptions report;
    report.details = false;
    report.walk.microbatch_limit = microbatch_limit(plan, ranks[i].events, options.request_limit);
    MemoryReport r = memory_report(plan, machine, ranks[i].memory.rank, report);
    RankMemory& m = ranks[i].memory;
    m.emulated = true;
    m.allocated = std::max(m.allocated, r.peak_allocated);
    m.reserved = r.peak_reserved;
    out.overhead = std::max(out.overhead, m.reserved / m.allocated - 1.0);
    const bool tight = m.reserved > room && m.allocated <= room;
    report.available = room;
    if (tight) r = memory_report(plan, machine, m.rank, report);
    if (tight && !r.out_of_memory) {
      m.reserved = r.peak_reserved;
      m.retries = r.retries;
    } else {
      out.squeezed = false;
    }
  }
  return out;
}

struct Communicator {
  const char* name;
  int ranks;
};

}  // namespace

std::vector<OutsidePart> outside_parts(const StepPlan& plan, const Machine& machine) {
  const ParallelConfig& p = plan.scenario.parallel;
  std::vector<OutsidePart> out{{"CUDA context and modules", machine.software.context_memory}};
  const Communicator groups[] = {{"world", plan.scenario.cluster.gpus()},
                                 {"tensor", p.tp},
                                 {"context", p.cp},
                                 {"expert", p.ep},
                                 {"data", p.dp},
                                 {"pipeline", p.pp}};
  for (const Communicator& c : groups)
    if (c.ranks > 1)
      out.push_back({fmt::format("NCCL communicator: {}", c.name), machine.software.communicator_memory});
  const MoeEffects& e = plan.layers->moe();
  // Buffers of static dispatchers are registered (symmetric) memory, made outside the caching allocator.
  if (e.present && !e.dynamic_shapes) {
    out.push_back({"dispatcher buffers (symmetric memory)", e.buffers});
    out.push_back({"replicated expert pool (symmetric memory)", e.pool});
  }
  std::erase_if(out, [](const OutsidePart& part) { return part.bytes.count() == 0; });
  return out;
}

Bytes outside_allocator(const StepPlan& plan, const Machine& machine) {
  Bytes sum;
  for (const OutsidePart& part : outside_parts(plan, machine)) sum += part.bytes;
  return sum;
}

MemoryReport rank_memory_report(const StepPlan& plan, const Machine& machine, int rank, const MemoryOptions& options) {
  MemoryReportOptions report;
  report.walk.microbatch_limit = microbatch_limit(plan, count(plan, machine, rank).events, options.request_limit);
  report.available = std::max(Bytes::mib(1), room_of(plan, machine));
  return memory_report(plan, machine, rank, report);
}

std::vector<MemoryStep> memory_steps(const StepPlan& plan, int rank, const SoftwareProfile& software) {
  RankMemory m;
  CountingSink sink(m);
  walk_memory(plan, software, rank, {}, sink);
  return std::move(sink.steps);
}

RankMemory counted_memory(const StepPlan& plan, const Machine& machine, int rank) {
  RankMemory m = count(plan, machine, rank).memory;
  m.outside = outside_allocator(plan, machine);
  m.allocated += machine.software.workspace_memory;
  m.reserved = Bytes::ceil(m.allocated.as_double() * (1.0 + machine.software.fragmentation));
  return m;
}

std::vector<RankMemory> memory_per_rank(const StepPlan& plan, const Machine& machine, const MemoryOptions& options) {
  const Bytes capacity = capacity_of(plan, machine), room = room_of(plan, machine);
  std::vector<Counted> ranks;
  for (int rank = 0; rank < plan.schedule.ranks; ++rank) ranks.push_back(count(plan, machine, rank));
  const Emulated fullest = emulate_fullest(plan, machine, options, ranks);
  const Bytes outside = outside_allocator(plan, machine);
  std::vector<RankMemory> out;
  for (Counted& c : ranks) {
    RankMemory& m = c.memory;
    m.outside = outside;
    const Bytes workspace = machine.software.workspace_memory;
    const bool squeezed = fullest.squeezed && m.allocated <= room;
    m.allocated += workspace;
    m.reserved = m.emulated ? m.reserved + workspace : Bytes::ceil(m.allocated.as_double() * (1.0 + fullest.overhead));
    if (squeezed) m.reserved = std::min(m.reserved, room + workspace);
    const Bytes total = m.reserved + m.outside;
    m.short_by = total > capacity ? total - capacity : Bytes(0);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace k3sim
