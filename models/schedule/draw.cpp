// Terminal drawing: every action paints the columns that it covers.
// Source: see draw.h.
#include "models/schedule/draw.h"

#include <fmt/format.h>

#include <algorithm>

namespace k3sim {

namespace {
char letter(const Action& a, bool later_chunk) {
  switch (a.kind) {
    case ActionKind::kForward:
      return later_chunk ? 'f' : 'F';
    case ActionKind::kInputGrad:
      return later_chunk ? 'i' : 'I';
    case ActionKind::kWeightGrad:
      return later_chunk ? 'w' : 'W';
    case ActionKind::kBackward:
      return later_chunk ? 'b' : 'B';
    case ActionKind::kOverlap:
      return 'X';
    default:
      return '.';
  }
}

const char* colour_of(const Action& a) {
  switch (a.kind) {
    case ActionKind::kForward:
      return "\x1b[44m";
    case ActionKind::kInputGrad:
    case ActionKind::kBackward:
      return "\x1b[42m";
    case ActionKind::kWeightGrad:
      return "\x1b[43m";
    default:
      return "\x1b[45m";
  }
}

Time shortest_action(const Timeline& t, const Schedule& s) {
  Time least = Time::max();
  for (std::size_t r = 0; r < s.actions.size(); ++r)
    for (std::size_t i = 0; i < s.actions[r].size(); ++i) {
      const Time took = t.ranks[r].actions[i].end - t.ranks[r].actions[i].start;
      if (is_compute(s.actions[r][i].kind) && took > Time()) least = std::min(least, took);
    }
  return least == Time::max() ? Time::ps(1) : least;
}

struct Scale {
  std::int64_t span, columns;
  std::int64_t column(Time at) const {
    return static_cast<std::int64_t>(
        static_cast<double>(at.picoseconds()) / static_cast<double>(span) * static_cast<double>(columns) + 0.5);
  }
};

std::string draw_rank(const Schedule& s, std::size_t rank, const Timeline& t, const Scale& scale, bool colour) {
  std::string out;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < s.actions[rank].size(); ++i) {
    const Action& a = s.actions[rank][i];
    if (!is_compute(a.kind)) continue;
    const std::int64_t begin = std::max(at, scale.column(t.ranks[rank].actions[i].start));
    const std::int64_t end = scale.column(t.ranks[rank].actions[i].end);
    if (end <= begin) continue;
    out.append(static_cast<std::size_t>(begin - at), colour ? ' ' : '.');
    std::string cell(1, letter(a, a.stage >= s.ranks));
    const std::string number = std::to_string(a.microbatch);
    const auto room = static_cast<std::size_t>(end - begin);
    if (1 + number.size() <= room) cell += number;
    cell.resize(room, colour ? ' ' : '-');
    out += colour ? colour_of(a) + cell + "\x1b[0m" : cell;
    at = end;
  }
  return out;
}
}  // namespace

std::string draw_text(const Schedule& s, const Timeline& t, const DrawOptions& options) {
  const std::int64_t span = std::max<std::int64_t>(1, t.makespan.picoseconds());
  constexpr std::int64_t kColumnsPerAction = 3;
  const std::int64_t wanted = span * kColumnsPerAction / std::max<std::int64_t>(1, shortest_action(t, s).picoseconds());
  const Scale scale{span, std::clamp<std::int64_t>(wanted, 1, options.width)};
  std::string out;
  for (std::size_t r = 0; r < s.actions.size(); ++r)
    out += fmt::format("{:>4} |{}\n", r, draw_rank(s, r, t, scale, options.colour));
  return out;
}

std::string draw_prefix(const Schedule& s, const std::map<int, int>& failing_index) {
  constexpr int kShown = 10;
  std::string out;
  for (const auto& [rank, index] : failing_index) {
    const auto& row = s.actions[static_cast<std::size_t>(rank)];
    const int end = std::min(std::max(index, 0), static_cast<int>(row.size())), begin = std::max(0, end - kShown);
    out += fmt::format("  rank {} |{}", rank, begin > 0 ? fmt::format(" ... {} more", begin) : "");
    for (int i = begin; i < end; ++i) {
      const std::string text = to_string(row[static_cast<std::size_t>(i)]);
      out += " " + (text.empty() ? "." : text);
    }
    out += end < static_cast<int>(row.size()) ? fmt::format(" >{}<\n", to_string(row[static_cast<std::size_t>(end)]))
                                              : " >end<\n";
  }
  return out;
}

}  // namespace k3sim
