// SVG drawing with time to scale. Actions narrower than a pixel are drawn one pixel wide without text.
// Source: see draw.h; SVG 1.1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/schedule/draw.h"

namespace k3sim {

namespace {
constexpr int kRowHeight = 22, kLeft = 60, kTop = 26, kAxis = 34, kLegend = 22;

const char* fill_of(ActionKind kind, bool later_chunk) {
  switch (kind) {
    case ActionKind::kForward:
      return later_chunk ? "#93b7f2" : "#4a7fd6";
    case ActionKind::kInputGrad:
      return later_chunk ? "#a8ded6" : "#3fa796";
    case ActionKind::kBackward:
      return later_chunk ? "#a5d9a7" : "#58ab5c";
    case ActionKind::kWeightGrad:
      return later_chunk ? "#f6cf96" : "#e8a23d";
    default:
      return "#9a77c2";
  }
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

void draw_box(std::string& out, const Action& a, const Interval& at, double x, double width, int y, bool later_chunk) {
  const double shown = std::max(1.0, width);
  const std::string notes = annotation_text(a);
  out += fmt::format("<g><title>{} {:.4f} ... {:.4f} ms{}{}</title>", escaped(to_string(a)), at.start.milliseconds(),
                     at.end.milliseconds(), notes.empty() ? "" : ": ", escaped(notes));
  if (a.kind == ActionKind::kOverlap) {
    for (int half = 0; half < 2; ++half) {
      const Action part = half == 0 ? first_half(a) : second_half(a);
      const int top = y + half * (kRowHeight - 4) / 2;
      out += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>", x, top, shown,
                         (kRowHeight - 4) / 2, fill_of(part.kind, false));
      if (width >= 14)
        out += fmt::format("<text x=\"{:.2f}\" y=\"{}\" font-size=\"9\">{}</text>", x + width / 2, top + 8,
                           part.microbatch);
    }
  } else {
    out += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>", x, y, shown,
                       kRowHeight - 4, fill_of(a.kind, later_chunk));
    if (width >= 14) out += fmt::format("<text x=\"{:.2f}\" y=\"{}\">{}</text>", x + width / 2, y + 13, a.microbatch);
  }
  if (a.flags & kFlagRedispatch)  // the dispatch runs again beside the second half
    out += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"4\" fill=\"#c2410c\"/>", x + shown / 2,
                       y + kRowHeight - 8, shown / 2);
  out += "</g>\n";
}

// What the colours mean, of the kinds that occur.
std::string legend(const Schedule& s, int y) {
  bool seen[32] = {}, redispatch = false, chunks = false;
  for (const auto& row : s.actions)
    for (const Action& a : row) {
      for_each_part(a, [&](const Action& part) { seen[static_cast<std::size_t>(part.kind)] = true; });
      redispatch = redispatch || (a.flags & kFlagRedispatch);
      chunks = chunks || (is_plain_compute(a.kind) && a.stage >= s.ranks);
    }
  std::string out;
  int x = kLeft;
  const auto add = [&](const char* fill, const std::string& text) {
    constexpr int kBox = 12, kLetter = 6;
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"start\">{}</text>\n",
        x, y, kBox, kBox, fill, x + kBox + 5, y + 10, text);
    x += kBox + 5 + kLetter * static_cast<int>(text.size()) + 18;
  };
  const auto has = [&](ActionKind kind) { return seen[static_cast<std::size_t>(kind)]; };
  if (has(ActionKind::kForward)) add(fill_of(ActionKind::kForward, false), "F forward");
  if (has(ActionKind::kInputGrad)) add(fill_of(ActionKind::kInputGrad, false), "I input gradient");
  if (has(ActionKind::kBackward)) add(fill_of(ActionKind::kBackward, false), "B full backward");
  if (has(ActionKind::kWeightGrad)) add(fill_of(ActionKind::kWeightGrad, false), "W weight gradient");
  if (chunks) add(fill_of(ActionKind::kForward, true), "lighter: later chunks of a rank");
  if (redispatch) add("#c2410c", "expert dispatch again");
  return out;
}

// A round step that gives five to ten marks.
double axis_step(double span) {
  const double rough = span / 8, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double f : {1.0, 2.0, 5.0})
    if (rough <= f * power) return f * power;
  return 10 * power;
}
}  // namespace

std::string draw_svg(const Schedule& s, const Timeline& t, const DrawOptions& options) {
  const double span = std::max(1e-9, t.makespan.milliseconds()), pixels = options.width;
  const int bottom = kTop + kRowHeight * static_cast<int>(s.actions.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"11\" "
      "text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"16\" text-anchor=\"start\">{}: {} ranks, {} stages, {} micro-batches, {:.4f} ms, bubble "
      "{:.4f} ms</text>\n",
      static_cast<int>(pixels) + kLeft + 20, bottom + kAxis + kLegend, kLeft, escaped(s.name), s.ranks, s.stages,
      s.microbatches, span, t.bubble().milliseconds());
  for (std::size_t r = 0; r < s.actions.size(); ++r) {
    const int y = kTop + kRowHeight * static_cast<int>(r) + 2;
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">rank {}</text>\n", kLeft - 6, y + 13, r);
    for (std::size_t i = 0; i < s.actions[r].size(); ++i) {
      const Action& a = s.actions[r][i];
      if (!is_compute(a.kind)) continue;
      const Interval& at = t.ranks[r].actions[i];
      const double x = kLeft + at.start.milliseconds() / span * pixels,
                   width = (at.end - at.start).milliseconds() / span * pixels;
      draw_box(out, a, at, x, width, y, a.stage >= s.ranks);
    }
  }
  const double step = axis_step(span);
  for (int i = 0; i * step <= span * (1 + 1e-9); ++i) {
    const double x = kLeft + i * step / span * pixels;
    out += fmt::format(
        "<line x1=\"{0:.2f}\" y1=\"{1}\" x2=\"{0:.2f}\" y2=\"{2}\" stroke=\"#888\"/><text x=\"{0:.2f}\" "
        "y=\"{3}\">{4:.6g} ms</text>\n",
        x, bottom, bottom + 5, bottom + 18, i * step);
  }
  return out + legend(s, bottom + kAxis) + "</svg>\n";
}

}  // namespace k3sim
