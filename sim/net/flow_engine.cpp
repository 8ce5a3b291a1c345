// Time, predictions and usage of the flow engine; see the header.
// Source: engine-design notes sections 2, 3 and 5.
#include "sim/net/flow_engine.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace k3sim {
namespace {

// Bytes / rate as Time::from_seconds_ceil rounds it, without the calls into libm, which cost a tenth of the engine's
// time.
Time time_at_rate(double bytes, double rate) {
  const double seconds = bytes / rate, ps = seconds * 1e12;
  if (seconds >= 500) return Time::from_seconds_ceil(seconds);
  const auto whole = static_cast<std::int64_t>(ps);
  return Time::ps(whole + (ps - static_cast<double>(whole) > ps * 0x1p-50 ? 1 : 0));
}

// The nearest rate with 32 significant bits. Sums of the same loads in another order (one class that stands for four,
// or four classes) differ in the last bits; rounding makes them the same rate, so that runs agree to the picosecond.
double rounded(double rate) {
  constexpr std::uint64_t kDropped = (std::uint64_t{1} << 20) - 1;
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(rate) + (kDropped + 1) / 2) & ~kDropped);
}

}  // namespace
FlowEngine::FlowEngine(std::span<const Bandwidth> capacities) : table_(capacities) {}

void FlowEngine::record_usage() {
  record_ = true;
  usage_.assign(table_.link_count(), {});
  load_.assign(table_.link_count(), 0);
}

FlowEngineStats FlowEngine::stats() const {
  return {.completions = completions_,
          .solves = solver_.solves(),
          .flows_solved = solver_.flows_solved(),
          .seconds_lost = seconds_lost_};
}

void FlowEngine::start(const FlowRequest& request, Time now) {
  CS_CHECK(now >= now_, "flow {} starts {} ps in the past", request.id.value, (now_ - now).picoseconds());
  if (now > now_) {
    CS_CHECK(now <= next_event(), "flow {} starts after an event that was not taken", request.id.value);
    now_ = now;
  }
  const FlowTable::Slot slot = table_.allocate(request);
  active_.resize(table_.slot_count());
  FlowTable::Flow& f = table_.flow(slot);
  f.first_byte = f.since = now + request.latency;
  ++running_;
  if (request.bytes == Bytes(0)) {  // completes when its latency is paid
    pending_.set(slot, f.since, Event::make_key(Priority::complete, f.id));
  } else if (request.latency > Time()) {
    pending_.set(slot, f.since, Event::make_key(Priority::start, f.id));
  } else {
    begin(slot);
  }
}

void FlowEngine::begin(FlowTable::Slot slot) {
  table_.attach(slot);
  active_[slot] = 1;
  dirty_ = true;
}

void FlowEngine::add_load(FlowTable::Slot slot, double change) {
  for (const auto& e : table_.path(slot)) {
    double& load = load_[e.link];
    load += e.weight() * change;
    usage_[e.link].peak_load = std::max(usage_[e.link].peak_load, load);
  }
}

void FlowEngine::set_rate(FlowTable::Slot slot, double rate) {
  FlowTable::Flow& f = table_.flow(slot);
  if (f.rate == rate) return;
  if (f.rate > 0) f.remaining = std::max(0.0, f.remaining - f.rate * (now_ - f.since).seconds());
  f.since = now_;
  f.rate = rate;
  pending_.set(slot, now_ + time_at_rate(f.remaining, rate), Event::make_key(Priority::complete, f.id));
}

void FlowEngine::settle() {
  if (!dirty_) return;
  dirty_ = false;
  const auto changes = solver_.solve(table_);
  if (record_) {  // decreases first, so that a peak is a load that really existed
    for (const auto& c : changes) add_load(c.slot, std::min(0.0, rounded(c.rate) - table_.flow(c.slot).rate));
    for (const auto& c : changes) add_load(c.slot, std::max(0.0, rounded(c.rate) - table_.flow(c.slot).rate));
  }
  for (const auto& c : changes) set_rate(c.slot, rounded(c.rate));
}

Time FlowEngine::next_event() {
  settle();
  return pending_.empty() ? Time::max() : pending_.top_time();
}

void FlowEngine::complete(FlowTable::Slot slot) {
  FlowTable::Flow& f = table_.flow(slot);
  if (active_[slot]) {
    active_[slot] = 0;
    dirty_ = true;
    if (record_) {
      add_load(slot, -f.rate);
      for (const auto& e : table_.path(slot)) usage_[e.link].bytes += e.weight() * f.bytes;
    }
    seconds_lost_ += std::max(0.0, (now_ - f.first_byte).seconds() - f.bytes / f.bound);
    table_.detach(slot);
  }
  table_.release(slot);
  ++completions_;
  --running_;
}

void FlowEngine::advance(Time now, std::vector<FlowId>& finished) {
  const Time next = next_event();
  CS_CHECK(now >= now_ && now <= next, "advance to {} ps, but the next event is at {} ps", now.picoseconds(),
           next.picoseconds());
  now_ = now;
  while (!pending_.empty() && pending_.top_time() == now) {
    const Event e = pending_.top();
    const FlowTable::Slot slot = pending_.top_slot();
    pending_.pop();
    if (e.priority() == Priority::start) {
      begin(slot);
    } else {
      finished.push_back(FlowId(e.id()));
      complete(slot);
    }
  }
}

void FlowEngine::set_capacity(LinkId link, Bandwidth capacity, Time now) {
  settle();
  now_ = now;
  table_.set_capacity(link, capacity);
  dirty_ = true;
}

}  // namespace k3sim
