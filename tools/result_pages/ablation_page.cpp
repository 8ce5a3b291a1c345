#include "tools/result_pages/ablation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace k3sim {

namespace {

bool has_number(const AblationRow& r) {
  return r.reason == Reason::ok || r.reason == Reason::memory;
}

std::string answer(const Scenario& s, const Ablation& a) {
  std::string out = fmt::format("{} on {} x {}: step {:.3f} s (+{:.1f} % at 95 % confidence), MFU {:.1f} %",
                                s.model.name, s.cluster.gpus(), s.cluster.gpu, a.base.step.seconds(),
                                100.0 * (a.base.step_p95.seconds() / a.base.step.seconds() - 1.0), a.base.mfu_pct);
  const AblationRow* most = nullptr;
  for (const AblationRow& r : a.rows)
    if (!r.cumulative && has_number(r) && (!most || r.step_change_s > most->step_change_s)) most = &r;
  if (most && most->step_change_s > 0)
    out += fmt::format("; \"{}\" would cost most, {:+.2f} s ({:+.1f} %)", most->name, most->step_change_s,
                       100.0 * most->step_change_s / a.base.step.seconds());
  return out;
}

struct Measure {
  const char *id, *title, *unit;
  double (*change)(const AblationRow&);
  double (*base)(const StepSummary&);
  bool larger_is_better;
};
constexpr Measure kMeasures[] = {
    {"time", "step time", "s", [](const AblationRow& r) { return r.step_change_s; },
     [](const StepSummary& s) { return s.step.seconds(); }, false},
    {"mfu", "MFU", "%", [](const AblationRow& r) { return r.mfu_change; },
     [](const StepSummary& s) { return s.mfu_pct; }, true},
    {"memory", "peak memory", "GiB", [](const AblationRow& r) { return r.memory_change_gib; },
     [](const StepSummary& s) { return s.peak_reserved.gibibytes(); }, false}};

PageDeltas deltas(const Ablation& a, const Measure& m, bool cumulative) {
  PageDeltas d;
  d.unit = m.unit;
  d.waterfall = cumulative;
  d.from = cumulative ? m.base(a.base) : 0;
  d.larger_is_better = m.larger_is_better;
  d.first = fmt::format("change of the {}", m.title);
  d.table = {fmt::format("{}_{}", m.id, cumulative ? "cumulative" : "single"),
             cumulative ? fmt::format("{} when mechanisms are turned off one after the other", m.title)
                        : fmt::format("Change of the {} when one mechanism is off", m.title),
             "prediction, every row predicted anew",
             {},
             {}};
  d.table.caption[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(d.table.caption[0])));
  for (const AblationRow& r : a.rows) {
    if (r.cumulative != cumulative || !has_number(r)) continue;
    d.rows.push_back({r.name, m.change(r)});
  }
  if (!cumulative)
    std::stable_sort(d.rows.begin(), d.rows.end(),
                     [](const PageDelta& x, const PageDelta& y) { return std::abs(x.value) > std::abs(y.value); });
  return d;
}

}  // namespace

PageDeltas sensitivity_deltas(const std::vector<Sensitivity>& inputs) {
  PageDeltas d;
  d.unit = "%";
  d.first = "input 10 % worse";
  d.second = "input 10 % better";
  d.table = {"sensitivity",
             "What 10 % on one input does to the step time, everything else equal",
             "prediction, each row predicted anew",
             {{"input", "input", "", "what changes", true, false, "profile or scenario"},
              {"worse_pct", "10 % worse", "%", "change of the step time"},
              {"better_pct", "10 % better", "%", "change of the step time"}},
             {}};
  for (const Sensitivity& s : inputs) {
    d.rows.push_back({s.input, s.step_change_pct, s.step_gain_pct});
    d.table.rows.push_back({s.input, csv_number(s.step_change_pct), csv_number(s.step_gain_pct)});
  }
  return d;
}

HtmlPage ablation_page(const Scenario& s, const Ablation& a, const std::vector<Sensitivity>& inputs,
                       const std::string& command) {
  HtmlPage page("Ablation of " + (s.name.empty() ? s.model.name : s.name), answer(s, a));
  page.figures("The scenario",
               {{"step_time_s", "step time", csv_number(a.base.step.seconds()), "s", "prediction"},
                {"step_time_p95_s", "step time, 95 % below", csv_number(a.base.step_p95.seconds()), "s",
                 "prediction; spread of the kernel fits"},
                {"mfu_pct", "MFU", csv_number(a.base.mfu_pct), "%", "prediction over the profile's dense peak"},
                {"peak_reserved_gib", "peak memory held", csv_number(a.base.peak_reserved.gibibytes()), "GiB",
                 "prediction, fullest GPU"}});
  for (const bool cumulative : {false, true})
    for (const Measure& m : kMeasures)
      page.deltas(&m != kMeasures ? ""
                  : cumulative    ? "One after the other"
                                  : "One mechanism off",
                  deltas(a, m, cumulative));
  page.table("All rows", page_table("ablation", "Singly and cumulatively, with the reason where there is no number",
                                    "prediction", ablation_table(a)));
  if (!inputs.empty()) page.deltas("Sensitivity", sensitivity_deltas(inputs));
  page.note("Assumptions and provenance",
            {"Every row is a prediction of its own with the overrides of that mechanism; a mechanism that changes "
             "nothing is left out. Cumulative rows keep all mechanisms above them off.",
             "Colours: blue is a gain (shorter, or less memory), orange a loss; the sign stands beside every bar."});
  page.note("How to reproduce",
            {fmt::format("k3sim {} gives these numbers again, bit by bit:", K3SIM_VERSION), command, "Scenario:"},
            s.text);
  return page;
}

}  // namespace k3sim
