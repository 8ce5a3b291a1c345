#include "sim/trace/perfetto_proto.h"

#include <algorithm>

#include "sim/trace/wire.h"

namespace k3sim {

namespace {

// Field numbers by message.
enum : std::uint32_t { kTracePacket = 1 };
enum : std::uint32_t {
  kPacketTimestamp = 8,
  kPacketSequence = 10,
  kPacketEvent = 11,
  kPacketInterned = 12,
  kPacketFlags = 13,
  kPacketTrack = 60
};
enum : std::uint32_t {
  kTrackUuid = 1,
  kTrackName = 2,
  kTrackProcess = 3,
  kTrackThread = 4,
  kTrackParent = 5,
  kTrackCounter = 8
};
enum : std::uint32_t {
  kProcessPid = 1,
  kProcessName = 6,
  kThreadPid = 1,
  kThreadTid = 2,
  kThreadName = 5,
  kCounterUnitName = 6
};
enum : std::uint32_t {
  kEventCategory = 3,
  kEventType = 9,
  kEventNameIid = 10,
  kEventTrack = 11,
  kEventReal = 44,
  kEventFlow = 47
};
enum : std::uint32_t { kInternedCategory = 1, kInternedName = 2, kInternedIid = 1, kInternedText = 2 };
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounterValue = 4;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2, kSequence = 1;

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {
    flows_.reserve(trace.flows.size() * 2);
    for (std::size_t i = 0; i < trace.flows.size(); ++i) {
      flows_.push_back({trace.flows[i].from, i + 1});
      flows_.push_back({trace.flows[i].to, i + 1});
    }
    std::sort(flows_.begin(), flows_.end());
  }

  std::string bytes() {
    interned();  // first: packets that need interned names are dropped before the state was cleared once
    tracks();
    for (std::uint32_t i = 0; i < trace_.slices.size(); ++i) slice(i);
    for (const TraceSample& s : trace_.samples) sample(s);
    return out_.bytes();
  }

 private:
  std::uint64_t process_uuid(std::size_t p) const { return 1 + p; }
  std::uint64_t thread_uuid(std::size_t t) const { return 1 + trace_.processes.size() + t; }
  std::uint64_t counter_uuid(std::size_t c) const { return 1 + trace_.processes.size() + trace_.threads.size() + c; }

  void packet(std::uint64_t flags) {
    packet_.number(kPacketSequence, kSequence);
    packet_.number(kPacketFlags, flags);
    out_.message(kTracePacket, packet_);
    packet_.clear();
  }

  void track(const WireWriter& descriptor) {
    packet_.message(kPacketTrack, descriptor);
    packet(kNeedsState);
  }

  void tracks() {
    for (std::size_t p = 0; p < trace_.processes.size(); ++p) {
      WireWriter process, t;
      process.number(kProcessPid, p + 1);
      process.text(kProcessName, trace_.processes[p]);
      t.number(kTrackUuid, process_uuid(p));
      t.message(kTrackProcess, process);
      track(t);
    }
    for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
      WireWriter thread, t;
      thread.number(kThreadPid, trace_.threads[i].process + 1);
      thread.number(kThreadTid, i + 1);
      thread.text(kThreadName, trace_.threads[i].name);
      t.number(kTrackUuid, thread_uuid(i));
      t.number(kTrackParent, process_uuid(trace_.threads[i].process));
      t.message(kTrackThread, thread);
      track(t);
    }
    for (std::size_t i = 0; i < trace_.counters.size(); ++i) {
      WireWriter counter, t;
      counter.text(kCounterUnitName, trace_.counters[i].unit);
      t.number(kTrackUuid, counter_uuid(i));
      t.text(kTrackName, trace_.counters[i].name);
      t.number(kTrackParent, process_uuid(trace_.counters[i].process));
      t.message(kTrackCounter, counter);
      track(t);
    }
  }

  // Every name once, as event name and as category; number 0 (the empty name) is not sent.
  void interned() {
    WireWriter data;
    for (const std::uint32_t list : {kInternedCategory, kInternedName})
      for (std::size_t i = 1; i < trace_.names.size(); ++i) {
        WireWriter entry;
        entry.number(kInternedIid, i);
        entry.text(kInternedText, trace_.names[i]);
        data.message(list, entry);
      }
    packet_.message(kPacketInterned, data);
    packet(kStateCleared | kNeedsState);
  }

  void event(Time time, const WireWriter& event) {
    packet_.number(kPacketTimestamp, static_cast<std::uint64_t>(trace_ns(time)));
    packet_.message(kPacketEvent, event);
    packet(kNeedsState);
  }

  void slice(std::uint32_t index) {
    const TraceSlice& s = trace_.slices[index];
    WireWriter begin, end;
    begin.number(kEventType, kSliceBegin);
    begin.number(kEventTrack, thread_uuid(s.thread));
    if (s.category != 0) begin.number(kEventCategory, s.category);
    if (s.name != 0) begin.number(kEventNameIid, s.name);
    for (; next_flow_ < flows_.size() && flows_[next_flow_].first == index; ++next_flow_)
      begin.fixed64(kEventFlow, flows_[next_flow_].second);
    event(s.start, begin);
    end.number(kEventType, kSliceEnd);
    end.number(kEventTrack, thread_uuid(s.thread));
    event(s.finish, end);
  }

  void sample(const TraceSample& s) {
    WireWriter e;
    e.number(kEventType, kCounterValue);
    e.number(kEventTrack, counter_uuid(s.counter));
    e.real(kEventReal, s.value);
    event(s.time, e);
  }

  const Trace& trace_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> flows_;  // slice, flow id
  std::size_t next_flow_ = 0;
  WireWriter out_, packet_;
};

}  // namespace

std::string perfetto_proto(const Trace& trace) {
  return Writer(trace).bytes();
}

}  // namespace k3sim
