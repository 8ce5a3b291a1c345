#include "tools/report/memory_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace k3sim {

namespace {

using Json = nlohmann::ordered_json;

std::string action_at(const MemoryReport& r, std::size_t request) {
  const auto it = std::upper_bound(r.action_ends.begin(), r.action_ends.end(), request);
  if (it == r.action_ends.end()) return "optimizer step";
  return to_string(r.actions[static_cast<std::size_t>(it - r.action_ends.begin())]);
}

// Points of the second step, which has all optimizer states; all points of a log of one step.
std::vector<const CurvePoint*> steady_points(const MemoryReport& r) {
  const std::size_t half = r.actions.size() / 2;
  const std::size_t start = half > 0 && r.actions.size() % 2 == 0 ? r.action_ends[half - 1] : 0;
  std::vector<const CurvePoint*> out;
  for (const CurvePoint& p : r.timeline.curve)
    if (p.request >= start) out.push_back(&p);
  return out;
}

void add_parts(CsvTable& table, int rank, const char* moment, const std::vector<LivePart>& parts) {
  for (const LivePart& p : parts)
    table.add({std::to_string(rank), moment, p.what, to_string(p.category), std::to_string(p.bytes.count())});
}

Json parts_json(const std::vector<LivePart>& parts) {
  Json out = Json::array();
  for (const LivePart& p : parts)
    out.push_back({p.what, to_string(p.category), std::round(p.bytes.gibibytes() * 1e4) / 1e4});
  return out;
}

std::int64_t mebibytes(Bytes b) {
  return b.count() >> 20;
}

// The largest, equal ones together, in at most `most` lines.
std::string part_lines(const std::vector<LivePart>& parts, std::size_t most) {
  std::vector<std::pair<LivePart, int>> sums;
  for (const LivePart& p : parts) {
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& s) {
      return s.first.what == p.what && s.first.category == p.category;
    });
    if (same == sums.end()) {
      sums.emplace_back(p, 1);
    } else {
      same->first.bytes += p.bytes;
      ++same->second;
    }
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.first.bytes > b.first.bytes; });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, sums.size()); ++i) {
    const auto& [part, count] = sums[i];
    out += fmt::format("  {:>8.2f} GiB  {}{} ({})\n", part.bytes.gibibytes(),
                       count > 1 ? fmt::format("{} x ", count) : "", part.what, to_string(part.category));
  }
  return out;
}

}  // namespace

CsvTable memory_peak_table(const MemoryView& view) {
  CsvTable table({{"rank", "1", "pipeline rank"},
                  {"moment", "text", "peak, out of memory, or outside (beside the allocator, all the time)"},
                  {"what", "text", "tensor or buffer"},
                  {"category", "text", "kind of memory"},
                  {"bytes", "byte", "block it occupies"}});
  const MemoryReport& r = view.report;
  add_parts(table, r.rank, "peak", r.at_peak);
  add_parts(table, r.rank, "out of memory", r.at_failure);
  for (const OutsidePart& p : view.outside)
    table.add({std::to_string(r.rank), "outside", p.what, "outside the allocator", std::to_string(p.bytes.count())});
  return table;
}

CsvTable memory_curve_table(const MemoryView& view) {
  std::vector<CsvColumn> columns{{"rank", "1", "pipeline rank"},
                                 {"action", "text", "schedule action that runs"},
                                 {"request", "1", "position in the request log"},
                                 {"allocated_bytes", "byte", "in use"},
                                 {"reserved_bytes", "byte", "held by the allocator"}};
  const MemoryReport& r = view.report;
  for (const std::string& c : r.timeline.categories) {
    std::string name = c + "_bytes";
    std::replace(name.begin(), name.end(), ' ', '_');
    columns.push_back({name, "byte", "in use for " + c});
  }
  CsvTable table(std::move(columns));
  for (const CurvePoint* p : steady_points(r)) {
    std::vector<std::string> row{std::to_string(r.rank), action_at(r, p->request), std::to_string(p->request),
                                 std::to_string(p->allocated.count()), std::to_string(p->reserved.count())};
    for (const Bytes b : p->by_category) row.push_back(std::to_string(b.count()));
    table.add(std::move(row));
  }
  return table;
}

std::string memory_log_json(const MemoryView& view) {
  const MemoryReport& r = view.report;
  Json j{{"rank", r.rank}, {"requests", r.requests}, {"retries", r.retries}, {"peak_at", r.peak_at}};
  j["categories"] = r.timeline.categories;
  j["curve"] = Json::array();
  for (const CurvePoint* p : steady_points(r)) {
    Json row{action_at(r, p->request), p->request, mebibytes(p->allocated), mebibytes(p->reserved)};
    for (const Bytes b : p->by_category) row.push_back(mebibytes(b));
    j["curve"].push_back(std::move(row));
  }
  j["at_peak"] = parts_json(r.at_peak);
  j["outside"] = Json::array();
  for (const OutsidePart& p : view.outside)
    j["outside"].push_back({p.what, std::round(p.bytes.gibibytes() * 1e4) / 1e4});
  if (r.out_of_memory) j["out_of_memory"] = *r.out_of_memory;
  if (r.out_of_memory) j["at_failure"] = parts_json(r.at_failure);
  j["knobs"] = r.knobs;
  return j.dump();
}

std::string memory_log_text(const MemoryView& view, int lines) {
  const MemoryReport& r = view.report;
  const auto room = [&](int taken) { return static_cast<std::size_t>(std::max(1, lines - taken)); };
  if (!r.out_of_memory) {
    std::string out =
        fmt::format("\nlargest tensors at the peak of pipeline rank {} (allocator, {})\n", r.rank, r.peak_at);
    out += part_lines(r.at_peak, std::min<std::size_t>(5, room(r.retries > 0 ? 3 : 2)));
    if (r.retries > 0)
      out +=
          fmt::format("  fits because unused segments are given back: {} allocator retries in two steps\n", r.retries);
    return out;
  }
  std::string out = fmt::format("\nout of memory on pipeline rank {}: {}\n", r.rank, *r.out_of_memory);
  const std::size_t knobs = std::min<std::size_t>(r.knobs.size(), room(4));
  out += part_lines(r.at_failure, std::min<std::size_t>(5, room(static_cast<int>(knobs) + 3)));
  if (knobs > 0) out += "what would save it\n";
  for (std::size_t i = 0; i < knobs; ++i) out += "  " + r.knobs[i] + "\n";
  return out;
}

}  // namespace k3sim
