// Source: see schedule_times.h.
#include "tools/commands/schedule_times.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/units_text.h"
#include "tools/commands/schedule_command.h"

namespace k3sim {

namespace {
constexpr std::string_view kHeader = "stage,forward,input_grad,weight_grad,transfer";

Time time_option(const char* option, const std::string& text) {
  const Parsed<Time> parsed = parse_time(text);
  if (!parsed.value)
    throw UsageError(fmt::format("{}: {}{}", option, parsed.why, parsed.hint.empty() ? "" : " (" + parsed.hint + ")"));
  return *parsed.value;
}

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    cells.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

class TimesReader {
 public:
  explicit TimesReader(const std::string& file) : file_(file) {}

  std::vector<StageTimes> read() {
    std::ifstream in(file_);
    if (!in) throw ConfigError("cannot read the file of stage times", "", {file_, 0, 0});
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (number == 1 && line != kHeader) problem(1, fmt::format("expected the header {}", kHeader));
      if (number > 1 && !line.empty()) row(line, number);
    }
    std::vector<StageTimes> out;
    for (const auto& [stage, times] : rows_) {
      if (stage != static_cast<std::int64_t>(out.size())) problem(0, fmt::format("stage {} is missing", out.size()));
      out.push_back(times);
    }
    if (out.empty()) problem(number, "no stages");
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return out;
  }

 private:
  void problem(int line, std::string what) {
    Problem p;
    p.place = {file_, line, 0};
    p.what = std::move(what);
    problems_.push_back(std::move(p));
  }

  void row(const std::string& line, int number) {
    const std::vector<std::string> cells = split(line);
    if (cells.size() != 5) return problem(number, fmt::format("expected 5 cells, got {}", cells.size()));
    const Parsed<std::int64_t> stage = parse_count(cells[0]);
    if (!stage) return problem(number, "stage: " + stage.why);
    StageTimes times;
    Time* const targets[] = {&times.forward, &times.input_grad, &times.weight_grad, &times.transfer};
    for (std::size_t i = 0; i < 4; ++i) {
      const Parsed<Time> parsed = parse_time(cells[i + 1]);
      if (!parsed) return problem(number, parsed.why);
      *targets[i] = *parsed.value;
    }
    if (!rows_.emplace(*stage.value, times).second)
      problem(number, fmt::format("stage {} is there twice", *stage.value));
  }

  const std::string& file_;
  std::map<std::int64_t, StageTimes> rows_;
  std::vector<Problem> problems_;
};
}  // namespace

StageTimes uniform_stage_times(const ScheduleCommandOptions& o) {
  return {.forward = time_option("--forward", o.forward),
          .input_grad = time_option("--input-grad", o.input_grad),
          .weight_grad = time_option("--weight-grad", o.weight_grad),
          .transfer = time_option("--transfer", o.transfer)};
}

std::vector<StageTimes> read_stage_times(const std::string& file) {
  return TimesReader(file).read();
}

}  // namespace k3sim
