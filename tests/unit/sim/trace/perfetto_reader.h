// A strict reader of the Perfetto form with trace_processor's rules: interned names must have been sent, tracks must
// have been described, an end needs a begin on its track, a begin inside an open slice is an overlap for us, every
// slice is closed, and state must have been cleared before a packet may need it.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>

#include "sim/trace/wire.h"

namespace k3sim {

struct PerfettoSlice {
  std::string name, category;
  std::uint64_t track = 0, start = 0, finish = 0;
  std::vector<std::uint64_t> flows;
};

class PerfettoReader {
 public:
  explicit PerfettoReader(std::string_view bytes) {
    WireReader trace(bytes);
    while (!trace.done()) {
      const WireField f = trace.next();
      if (f.number != 1 || f.type != 2) throw std::runtime_error("not a packet");
      packet(f.bytes);
    }
    for (const auto& [track, open] : open_)
      if (open) throw std::runtime_error(fmt::format("a slice of track {} never ends", track));
    for (const auto& [flow, ends] : flow_ends_)
      if (ends != 2) throw std::runtime_error(fmt::format("flow {} has {} ends", flow, ends));
  }

  std::vector<PerfettoSlice> slices;
  std::map<std::uint64_t, std::string> tracks;  // uuid -> name
  std::map<std::uint64_t, std::uint64_t> parents;
  std::map<std::uint64_t, std::vector<double>> counters;

 private:
  struct Event {
    std::uint64_t type = 0, track = 0, name = 0, category = 0;
    double value = 0;
    std::vector<std::uint64_t> flows;
  };

  void packet(std::string_view bytes) {
    std::uint64_t time = 0, flags = 0, sequence = 0;
    std::string_view event, interned, track;
    WireReader r(bytes);
    while (!r.done()) {
      const WireField f = r.next();
      switch (f.number) {
        case 8:
          time = f.value;
          break;
        case 10:
          sequence = f.value;
          break;
        case 11:
          event = f.bytes;
          break;
        case 12:
          interned = f.bytes;
          break;
        case 13:
          flags = f.value;
          break;
        case 60:
          track = f.bytes;
          break;
        default:
          throw std::runtime_error(fmt::format("packet field {}", f.number));
      }
    }
    if (sequence == 0) throw std::runtime_error("packet without a sequence");
    if (flags & 1) cleared_ = true;
    if ((flags & 2) && !cleared_) throw std::runtime_error("packet needs state that was never cleared");
    if (!interned.empty()) names(interned);
    if (!track.empty()) describe(track);
    if (!event.empty()) take(read_event(event), time);
  }

  void names(std::string_view bytes) {
    WireReader r(bytes);
    while (!r.done()) {
      const WireField list = r.next();
      std::uint64_t iid = 0;
      std::string text;
      WireReader entry(list.bytes);
      while (!entry.done()) {
        const WireField f = entry.next();
        (f.number == 1 ? void(iid = f.value) : void(text = f.bytes));
      }
      auto& table = list.number == 1 ? categories_ : names_;
      if (iid == 0 || !table.emplace(iid, text).second) throw std::runtime_error("interned number 0 or sent twice");
    }
  }

  void describe(std::string_view bytes) {
    std::uint64_t uuid = 0, parent = 0;
    std::string name;
    WireReader r(bytes);
    while (!r.done()) {
      const WireField f = r.next();
      if (f.number == 1) uuid = f.value;
      if (f.number == 2) name = f.bytes;
      if (f.number == 5) parent = f.value;
      if (f.number == 3 || f.number == 4) {
        WireReader inner(f.bytes);
        while (!inner.done()) {
          const WireField g = inner.next();
          if (g.number == (f.number == 3 ? 6u : 5u)) name = g.bytes;
        }
      }
    }
    if (uuid == 0 || !tracks.emplace(uuid, name).second) throw std::runtime_error("track 0 or described twice");
    if (parent != 0 && !tracks.count(parent)) throw std::runtime_error("parent track is unknown");
    parents[uuid] = parent;
  }

  static Event read_event(std::string_view bytes) {
    Event e;
    WireReader r(bytes);
    while (!r.done()) {
      const WireField f = r.next();
      switch (f.number) {
        case 3:
          e.category = f.value;
          break;
        case 9:
          e.type = f.value;
          break;
        case 10:
          e.name = f.value;
          break;
        case 11:
          e.track = f.value;
          break;
        case 44:
          e.value = f.real();
          break;
        case 47:
          e.flows.push_back(f.value);
          break;
        default:
          throw std::runtime_error(fmt::format("event field {}", f.number));
      }
    }
    return e;
  }

  void take(const Event& e, std::uint64_t time) {
    if (!tracks.count(e.track)) throw std::runtime_error(fmt::format("track {} was never described", e.track));
    if (time < last_[e.track]) throw std::runtime_error("time goes back on a track");
    last_[e.track] = time;
    for (std::uint64_t f : e.flows) ++flow_ends_[f];
    if (e.type == 4) {
      counters[e.track].push_back(e.value);
    } else if (e.type == 1) {
      if (open_[e.track]) throw std::runtime_error("a slice begins inside another one");
      open_[e.track] = true;
      current_[e.track] = {names_.at(e.name), categories_.at(e.category), e.track, time, time, e.flows};
    } else {
      if (e.type != 2 || !open_[e.track]) throw std::runtime_error("an end without a begin");
      open_[e.track] = false;
      current_[e.track].finish = time;
      slices.push_back(current_[e.track]);
    }
  }

  bool cleared_ = false;
  std::map<std::uint64_t, std::string> names_, categories_;
  std::map<std::uint64_t, bool> open_;
  std::map<std::uint64_t, PerfettoSlice> current_;
  std::map<std::uint64_t, std::uint64_t> last_;
  std::map<std::uint64_t, int> flow_ends_;
};

}  // namespace k3sim
