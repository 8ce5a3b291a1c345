#include "tools/planner/fit_frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace k3sim {

std::vector<FrontierPoint> fit_frontier(const SearchSpace& space, MachineStore& machines, const FitOptions& options) {
  FitOptions quick = options;
  quick.knobs = false;
  std::vector<SearchSpace> spaces;
  for (std::int64_t factor : {1, 4, 16})
    for (std::int64_t micro_batch : {1, 2}) {
      const std::int64_t sequence = space.base().batch.sequence * factor;
      spaces.push_back(
          space.with({fmt::format("batch.sequence={}", sequence), fmt::format("batch.micro_batch={}", micro_batch),
                      fmt::format("batch.global_tokens={}", sequence * micro_batch)}));
    }
  const std::vector<std::vector<FitAnswer>> answers = smallest_fits(spaces, machines, quick);
  std::vector<FrontierPoint> out;
  for (std::size_t i = 0; i < spaces.size(); ++i)
    for (const FitAnswer& a : answers[i]) {
      const BatchConfig& batch = spaces[i].base().batch;
      out.push_back({a.gpu, batch.sequence, batch.micro_batch, a.nodes, a.layout, a.binding});
    }
  return out;
}

namespace {

constexpr double kWidth = 720, kHeight = 420, kLeft = 70, kRight = 220, kTop = 30, kBottom = 60;
constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#8e5572", "#b8860b", "#5b5f97", "#4a4e4d"};

// Maps [least, most] of a quantity to a stretch of the picture, by its logarithm.
struct LogScale {
  double least, most, from, to;
  double at(double v) const {
    return most > least ? from + (to - from) * std::log(v / least) / std::log(most / least) : (from + to) / 2;
  }
};

std::string text_at(double x, double y, const std::string& anchor, const std::string& text) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor, text);
}

}  // namespace

std::string fit_frontier_svg(const std::vector<FrontierPoint>& points) {
  double longest = 1, shortest = 1e18, most = 1, least = 1e18;
  std::map<std::string, std::vector<const FrontierPoint*>> lines;
  std::map<std::string, const char*> colours;
  for (const FrontierPoint& p : points) {
    shortest = std::min(shortest, static_cast<double>(p.sequence));
    longest = std::max(longest, static_cast<double>(p.sequence));
    if (p.nodes == 0) continue;
    least = std::min(least, static_cast<double>(p.nodes));
    most = std::max(most, static_cast<double>(p.nodes));
    lines[fmt::format("{}, micro-batch {}", p.gpu, p.micro_batch)].push_back(&p);
    if (!colours.count(p.binding)) colours[p.binding] = kColours[std::min(colours.size(), std::size(kColours) - 1)];
  }
  const LogScale x{shortest, longest, kLeft, kWidth - kRight}, y{least, most, kHeight - kBottom, kTop};
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' font-family='sans-serif' font-size='12'>\n"
      "<rect width='{0}' height='{1}' fill='white'/>\n",
      kWidth, kHeight);
  out += text_at((kLeft + kWidth - kRight) / 2, kHeight - 15, "middle", "sequence length (tokens)");
  out += text_at(kLeft, 18, "start", "fewest nodes on which a layout fits; colour: what binds");
  for (const FrontierPoint& p : points) {
    const double px = x.at(static_cast<double>(p.sequence));
    out += text_at(px, kHeight - kBottom + 18, "middle", fmt::format("{}", p.sequence));
    if (p.nodes > 0) out += text_at(kLeft - 12, y.at(p.nodes) + 4, "end", fmt::format("{}", p.nodes));
  }
  double row = kTop + 10;
  int dash = 0;
  for (const auto& [name, line] : lines) {
    std::string path;
    for (const FrontierPoint* p : line)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x.at(static_cast<double>(p->sequence)),
                          y.at(p->nodes));
    const std::string style = fmt::format("fill='none' stroke='#555' stroke-dasharray='{}'",
                                          dash == 0 ? "none" : fmt::format("{} 3", 3 * dash));
    ++dash;
    out += fmt::format("<path d='{}' {}/>\n", path, style);
    out +=
        fmt::format("<path d='M{0},{2} L{1},{2}' {3}/>\n", kWidth - kRight + 15, kWidth - kRight + 45, row - 4, style);
    out += text_at(kWidth - kRight + 52, row, "start", name);
    row += 18;
    for (const FrontierPoint* p : line)
      out += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='5' fill='{}'/>\n", x.at(static_cast<double>(p->sequence)),
                         y.at(p->nodes), colours.at(p->binding));
  }
  for (const auto& [binding, colour] : colours) {
    out += fmt::format("<circle cx='{}' cy='{}' r='5' fill='{}'/>\n", kWidth - kRight + 30, row - 4, colour);
    out += text_at(kWidth - kRight + 52, row, "start", binding);
    row += 18;
  }
  return out + "</svg>\n";
}

CsvTable fit_frontier_table(const std::vector<FrontierPoint>& points) {
  CsvTable out({{"gpu", "text", "GPU type", "scenario"},
                {"sequence_tokens", "tokens", "sequence length", "scenario"},
                {"micro_batch", "1", "sequences of a micro-batch", "scenario"},
                {"nodes", "1", "fewest nodes on which a layout of the space fits; empty: none does"},
                {"binding", "text", "largest term of memory on the fullest stage"},
                {"layout", "text", "the layout that fits", "search"}});
  for (const FrontierPoint& p : points)
    out.add({p.gpu, fmt::format("{}", p.sequence), fmt::format("{}", p.micro_batch),
             p.nodes > 0 ? fmt::format("{}", p.nodes) : "", p.binding, p.layout});
  return out;
}

}  // namespace k3sim
