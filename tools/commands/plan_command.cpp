// k3sim plan: the best layouts of a space, with reasons. Source: product-spec section 2; engine-design section 16.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/plan_fit.h"
#include "tools/commands/progress.h"
#include "tools/commands/report_files.h"
#include "tools/commands/text_table.h"
#include "tools/planner/explain.h"
#include "tools/planner/search.h"
#include "tools/result_pages/plan_page.h"
#include "tools/sweep/journal_share.h"
#include "tools/sweep/sweep.h"

namespace k3sim {

namespace {

struct Options {
  std::string space, out, objective = "mfu";
  std::vector<std::string> set;
  int top = 10, threads = 0;
  bool fit = false, no_prune = false, resume = false, allow_assumed = false, tp_across_nodes = false, stats = false;
};

// What the results of a search depend on, but for data files: of another search, --resume takes nothing.
std::string search_digest(const SearchSpace& space, const SearchOptions& s, bool fit) {
  Fingerprint f;
  f.add(std::string_view(fmt::format("{} {} {} {} {} {}", K3SIM_VERSION, space.digest(), fit ? "fit" : "plan",
                                     static_cast<int>(s.objective), s.top, s.prune)));
  f.add(static_cast<std::uint64_t>((s.evaluate.allow_assumed ? 1 : 0) + (s.evaluate.tp_across_nodes ? 2 : 0)));
  return fmt::format("{:016x}", f.value());
}

// Who evaluates: threads or MPI ranks, and with a folder every result is on disk at once.
class PlanWork {
 public:
  PlanWork(const Options& o, const SearchSpace& space, SearchOptions& options, CommandContext& context)
      : folder_(o.out) {
    if (o.resume && o.out.empty()) throw UsageError("--resume needs the --out folder of the run that goes on");
    if (started_by_mpi()) {
      workers_ = mpi_share();
      if (o.threads == 0) options.threads = 1;
    } else {
      workers_ = std::make_unique<ThreadShare>(options.threads);
    }
    options.share = workers_.get();
    if (folder_.empty()) return;
    kept_ = std::make_unique<JournalShare>(*workers_, folder_, search_digest(space, options, o.fit), o.resume);
    options.share = kept_.get();
    if (o.resume && writes()) context.err << fmt::format("{} results were on disk\n", kept_->known());
  }
  bool writes() const { return workers_->writes(); }
  // After the results are written: nothing is left to resume.
  void finish() const {
    if (!folder_.empty() && writes()) remove_journals(folder_);
  }

 private:
  std::string folder_;
  std::unique_ptr<WorkShare> workers_;
  std::unique_ptr<JournalShare> kept_;
};

std::string ranked_table(const SearchSpace& space, const SearchResult& r, std::size_t top, bool colour) {
  TextTable table(
      {"#", "layout", "step s", "+-5 % costs", "MFU %", "GiB", "free GiB", "bubble %", "USD/step", "pareto"});
  for (std::size_t i = 0; i < std::min(top, r.ranked.size()); ++i) {
    const Ranked& p = r.ranked[i];
    const StepSummary& s = p.evaluation.prediction.summary;
    table.add({fmt::format("{}", i + 1), layout_text(space, p), fmt::format("{:.3f}", s.step.seconds()),
               fmt::format("{:.2f}..{:.2f}", p.step_low, p.step_high), fmt::format("{:.2f}", s.mfu_pct),
               fmt::format("{:.1f}", s.peak_reserved.gibibytes()),
               fmt::format("{:.1f}", s.capacity.gibibytes() - s.peak_reserved.gibibytes()),
               fmt::format("{:.1f}", s.bubble_pct), fmt::format("{:.2f}", s.cost_usd_per_step), p.pareto ? "yes" : ""});
  }
  return table.to_text(colour);
}

nlohmann::ordered_json plan_json(const SearchSpace& space, const SearchResult& r, std::size_t top) {
  nlohmann::ordered_json j;
  j["raw"] = r.raw;
  j["candidates"] = r.candidates;
  j["evaluated"] = r.evaluated;
  for (int i = 1; i < kReasons; ++i)
    if (r.counts[static_cast<std::size_t>(i)] > 0)
      j["rejected"][to_string(static_cast<Reason>(i))] = r.counts[static_cast<std::size_t>(i)];
  j["plans"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < std::min(top, r.ranked.size()); ++i) {
    const Ranked& p = r.ranked[i];
    nlohmann::ordered_json row{{"rank", i + 1},      {"id", space.id(p.index)},  {"layout", layout_text(space, p)},
                               {"pareto", p.pareto}, {"step_low_s", p.step_low}, {"step_high_s", p.step_high}};
    const std::vector<std::string> cells = summary_cells(p.evaluation.scenario, p.evaluation.prediction.summary);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const auto value = nlohmann::ordered_json::parse(cells[c], nullptr, false);
      row[summary_columns()[c].name] =
          value.is_discarded() || summary_columns()[c].name == "fingerprint" ? nlohmann::ordered_json(cells[c]) : value;
    }
    row["scenario"] = p.scenario_text;
    j["plans"].push_back(std::move(row));
  }
  if (r.ranked.size() > 1) j["explanation"] = explain_winner(space, r.ranked[0], r.ranked[1]);
  return j;
}

void write_plan(const std::string& folder, const SearchSpace& space, const SearchResult& r, std::size_t top,
                const CommandContext& context) {
  OutputFolder out(folder);
  add_results(out, {{"plan.csv", plan_table(space, r)}, {"candidates.csv", candidates_table(space, r)}},
              plan_page(space, r, context.command));
  // A searched policy is no setting of the space: its row refers to the file.
  for (std::size_t i = 0; i < r.ranked.size(); ++i)
    if (i < top || r.ranked[i].policy_searched) out.add(fmt::format("plan-{}.yaml", i + 1), r.ranked[i].scenario_text);
  out.commit();
}

std::string answer_text(const SearchSpace& space, const SearchResult& r, std::size_t top, bool colour) {
  std::string text = counts_text(r);
  if (r.ranked.empty()) {
    text += "nothing fits";
    if (!r.misfits.empty())
      text += fmt::format("; the fastest layouts: {} is {}", layout_text(space, r.misfits.front().index),
                          r.misfits.front().evaluation.text);
    return text + "\n";
  }
  text += "\n" + ranked_table(space, r, top, colour);
  if (r.ranked.size() > 1) text += "\n1 beats 2 " + explain_winner(space, r.ranked[0], r.ranked[1]) + "\n";
  return text;
}

int run(const Options& o, CommandContext& context) {
  const SearchSpace space = SearchSpace::load(o.space, o.set);
  MachineStore machines;
  SearchOptions options;
  options.objective = parse_objective(o.objective);
  options.top = o.top;
  options.prune = !o.no_prune;
  options.threads = o.threads > 0 ? o.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.evaluate.allow_assumed = o.allow_assumed;
  options.evaluate.tp_across_nodes = o.tp_across_nodes;
  PlanWork work(o, space, options, context);
  const bool writes = work.writes();
  if (o.fit) {
    const int code = plan_fit(space, machines, options, o.out, context);
    work.finish();
    return code;
  }
  SearchResult r;
  {
    std::unique_ptr<Progress> progress;
    std::int64_t shown = 0;
    if (writes)
      options.progress = [&](std::int64_t done, std::int64_t all) {
        if (!progress) progress = std::make_unique<Progress>(context, "plan", all);
        progress->advance(done - shown);
        shown = done;
      };
    r = search(space, machines, options);
  }
  if (!writes) return r.ranked.empty() ? 1 : 0;  // another rank reports
  if (!o.out.empty()) write_plan(o.out, space, r, static_cast<std::size_t>(o.top), context);
  work.finish();
  if (context.json)
    context.out << plan_json(space, r, static_cast<std::size_t>(o.top)).dump(2) << "\n";
  else
    context.out << answer_text(space, r, static_cast<std::size_t>(o.top), context.colour());
  if (o.stats)
    context.err << fmt::format(
        "rules {:.2f} s, tables {:.2f} s, bounds {:.2f} s, coarse {:.2f} s, kernel level {:.2f} s\n", r.rules_s,
        r.tables_s, r.bounds_s, r.coarse_s, r.kernel_s);
  return r.ranked.empty() ? 1 : 0;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "plan", "search layouts and policies", "k3sim plan k3_2048_h800 --top 5 --out out/plan");
  c->add_option("space", o->space, "space.yaml, its folder, or the name of a shipped scenario with one")->required();
  add_set_option(*c, o->set);
  c->add_option(
      "--out", o->out,
      "folder for plan.csv, report.html, candidates.csv (all, with reasons) and the best scenarios plan-1.yaml ...");
  c->add_option("--top", o->top, "plans to show (10)")->check(CLI::PositiveNumber);
  c->add_option("--objective", o->objective, "mfu (default), step_time, cost or goodput")
      ->check(CLI::IsMember({"mfu", "step_time", "cost", "goodput"}));
  c->add_option("--threads", o->threads, "threads; 0: one per core")->check(CLI::NonNegativeNumber);
  c->add_flag("--fit", o->fit, "answer which number of nodes is needed, what binds and what would help");
  c->add_flag("--no-prune", o->no_prune, "evaluate every candidate");
  c->add_flag("--resume", o->resume, "go on where an interrupted run with this --out stopped");
  c->add_flag("--allow-assumed", o->allow_assumed, "accept costs that no measurement anchors");
  c->add_flag("--tp-across-nodes", o->tp_across_nodes, "allow tensor parallelism beyond one node");
  c->add_flag("--stats", o->stats, "print the time of every phase");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = run(*o, context); });
}

}  // namespace k3sim
