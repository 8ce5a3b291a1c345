// k3sim regress record | check: predictions as a baseline in the repository, checked in CI.
// Exit codes of check: 0 pass, 1 a blocking row, 2 wrong input. Source: product-spec sections 2 and 7; issue 11.
#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/output_files.h"
#include "tools/commands/progress.h"
#include "tools/regress/compare.h"
#include "tools/regress/github.h"
#include "tools/regress/output.h"
#include "tools/regress/targets.h"

namespace k3sim {
namespace {

struct Options {
  std::string folder, junit, markdown, json_file;
  bool github = false;
};

std::optional<Baseline> stored_baseline(const RegressTarget& target) {
  if (!std::filesystem::exists(target.expected_file)) return std::nullopt;
  std::ifstream in(target.expected_file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return baseline_from_json(text.str(), target.expected_file);
}

int record(const Options& o, CommandContext& context) {
  const std::vector<RegressTarget> targets = find_regress_targets(o.folder);
  std::vector<std::pair<std::string, std::string>> files;
  Progress progress(context, "recording", static_cast<std::int64_t>(targets.size()));
  for (const RegressTarget& t : targets) {
    progress.advance();
    if (!t.input_exists) {
      context.err << t.expected_file << ": its input is gone; delete the file to accept that\n";
      continue;
    }
    Baseline fresh = evaluate_target(t);
    if (const std::optional<Baseline> old = stored_baseline(t)) keep_tolerances(*old, fresh);
    if (fresh.status != "ok") context.err << t.name << ": " << fresh.status << ": " << fresh.reason << "\n";
    files.emplace_back(t.expected_file, baseline_to_json(fresh));
  }
  for (const auto& [file, text] : files) {
    write_file_atomically(file, text);
    context.out << "recorded " << file << "\n";
  }
  return 0;
}

void write_github(const RegressReport& report, CommandContext& context) {
  context.out << github_annotations(report);
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (!summary) return;
  std::ofstream out(summary, std::ios::app);
  out << regress_markdown(report, kGithubSummaryBytes);
}

int check(const Options& o, CommandContext& context) {
  const std::vector<RegressTarget> targets = find_regress_targets(o.folder);
  RegressReport report;
  Progress progress(context, "checking", static_cast<std::int64_t>(targets.size()));
  for (const RegressTarget& t : targets) {
    compare_target(t, stored_baseline(t), evaluate_target(t), report);
    progress.advance();
  }
  sort_worst_first(report);
  if (!o.junit.empty()) write_file_atomically(o.junit, regress_junit(report));
  if (!o.markdown.empty()) write_file_atomically(o.markdown, regress_markdown(report, kGithubSummaryBytes));
  context.out << (context.json ? regress_json(report) : regress_text(report));
  if (o.github && !context.json) write_github(report, context);
  return report.pass() ? 0 : 1;
}

}  // namespace

void add_regress_command(CLI::App& app, CommandContext& context) {
  CLI::App* group = add_command(app, "regress", "a baseline of predictions, checked in CI",
                                "k3sim regress record scenarios && k3sim regress check scenarios --junit regress.xml");
  group->require_subcommand(1);
  const auto o = std::make_shared<Options>();
  const char* what = "folder with scenario folders and schedule CSV files, or one of them";
  CLI::App* r = add_command(*group, "record", "write expected.json beside every scenario and schedule",
                            "k3sim regress record scenarios");
  r->add_option("folder", o->folder, what)->required();
  r->callback([o, &context] { context.exit_code = record(*o, context); });
  CLI::App* c = add_command(*group, "check", "compare with the recorded baseline; exit code 1 on a regression",
                            "k3sim regress check schedules --github --junit regress.xml");
  c->add_option("folder", o->folder, what)->required();
  c->add_option("--junit", o->junit, "write a JUnit XML report");
  c->add_option("--markdown", o->markdown, "write the table as Markdown");
  c->add_flag("--github", o->github, "GitHub annotations, and the table in the step summary");
  add_json_flag(*c, context);
  c->callback([o, &context] { context.exit_code = check(*o, context); });
}

}  // namespace k3sim
