// SVG drawing with time to scale. Actions narrower than a pixel are drawn one pixel wide without text.
// Source: see draw.h; SVG 1.1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/schedule/draw.h"

namespace k3sim {

namespace {
constexpr int kRowHeight = 22, kLeft = 60, kTop = 26, kAxis = 34;

const char* fill_of(ActionKind kind, bool later_chunk) {
  switch (kind) {
    case ActionKind::kForward:
      return later_chunk ? "#93b7f2" : "#4a7fd6";
    case ActionKind::kInputGrad:
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
    for (int half = 0; half < 2; ++half)
      out += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>", x,
                         y + half * (kRowHeight - 4) / 2, shown, (kRowHeight - 4) / 2,
                         fill_of(half == 0 ? a.first_kind : a.second_kind, false));
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
      static_cast<int>(pixels) + kLeft + 20, bottom + kAxis, kLeft, escaped(s.name), s.ranks, s.stages, s.microbatches,
      span, t.bubble().milliseconds());
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
  return out + "</svg>\n";
}

}  // namespace k3sim
