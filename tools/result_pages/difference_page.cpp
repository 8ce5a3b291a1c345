#include "tools/result_pages/difference_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace k3sim {

namespace {

std::string name_of(const Scenario& s) {
  return s.name.empty() ? s.model.name : s.name;
}

double error_bar(const StepSummary& s) {
  return 100.0 * (s.step_p95.seconds() / s.step.seconds() - 1.0);
}

PageDeltas deltas(const char* id, const char* caption, const char* unit, const std::vector<Difference>& list) {
  PageDeltas d;
  d.unit = unit;
  d.first = "second minus first";
  d.table = {id,
             caption,
             "prediction",
             {{"part", "part", "", "", true},
              {"before", "first", unit, "in the first prediction"},
              {"after", "second", unit, "in the second one"},
              {"change", "change", unit, "second minus first"}},
             {}};
  for (const Difference& x : list) {
    if (x.change() != 0) d.rows.push_back({x.part, x.change()});
    d.table.rows.push_back({x.part, csv_number(x.before), csv_number(x.after), csv_number(x.change())});
  }
  return d;
}

// Lines of the scenario texts that only one of them has.
std::vector<std::string> changed_lines(const std::string& a, const std::string& b) {
  const auto lines = [](const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  };
  const std::vector<std::string> x = lines(a), y = lines(b);
  std::vector<std::string> out;
  for (const auto& [mine, other, sign] : {std::tuple(&x, &y, "- "), std::tuple(&y, &x, "+ ")})
    for (const std::string& line : *mine)
      if (std::find(other->begin(), other->end(), line) == other->end()) out.push_back(sign + line);
  return out;
}

std::vector<PageFigure> figures(const DifferencePageInput& in) {
  const StepSummary &a = in.first.summary, &b = in.second.summary;
  const auto n = [](double v) { return csv_number(v); };
  return {
      {"step_before_s", "step time, first", n(a.step.seconds()), "s", "prediction"},
      {"step_after_s", "step time, second", n(b.step.seconds()), "s", "prediction"},
      {"mfu_before_pct", "MFU, first", n(a.mfu_pct), "%", "prediction over the profile's dense peak"},
      {"mfu_after_pct", "MFU, second", n(b.mfu_pct), "%", "prediction over the profile's dense peak"},
      {"memory_before_gib", "peak memory, first", n(a.peak_reserved.gibibytes()), "GiB", "prediction, fullest GPU"},
      {"memory_after_gib", "peak memory, second", n(b.peak_reserved.gibibytes()), "GiB", "prediction, fullest GPU"}};
}

}  // namespace

HtmlPage difference_page(const DifferencePageInput& in, const StepDifference& d) {
  const StepSummary &a = in.first.summary, &b = in.second.summary;
  HtmlPage page(
      fmt::format("{} against {}", name_of(in.before), name_of(in.after)),
      fmt::format("Step {:.3f} s (+{:.1f} % at 95 % confidence) becomes {:.3f} s (+{:.1f} %): {:+.3f} s, {:+.2f} %",
                  d.step_before, error_bar(a), d.step_after, error_bar(b), d.step_after - d.step_before,
                  100.0 * (d.step_after / d.step_before - 1.0)));
  page.figures("The answer in numbers", figures(in));
  page.deltas(fmt::format("Along the critical path (slowest stage: pipeline rank {}, then {})", d.slowest_before,
                          d.slowest_after),
              deltas("critical",
                     "Parts of the critical path; changes add up to that of the step time. Bubble: other stages before "
                     "the path first comes to the slowest stage and after it has left it",
                     "s", d.critical));
  page.deltas("The same for the mean rank",
              deltas("time", "Parts of the step, mean over pipeline ranks; changes add up to that of the step time",
                     "s", d.time));
  page.deltas("Memory of the fullest rank",
              deltas("memory", "Peak memory by owner; changes add up to that of the peak", "GiB", d.memory));
  std::string lines;
  for (const std::string& line : changed_lines(in.before.text, in.after.text)) lines += line + "\n";
  page.note("What differs in the scenarios",
            {lines.empty() ? "Nothing: both are the same." : "Lines of the first (-) and of the second (+):"}, lines);
  page.note("How to reproduce",
            {fmt::format("k3sim {} gives these numbers again, bit by bit:", K3SIM_VERSION), in.command,
             "The first scenario:"},
            in.before.text);
  return page;
}

}  // namespace k3sim
