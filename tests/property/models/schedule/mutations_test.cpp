// Two hundred mutated copies of the sample files: every one is rejected with a reason or proven valid; none crashes or
// hangs. A valid answer is checked by other means: the timer reaches the end and the text round-trips.
// Source: issue 5 (mutated copies).
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/schedule/csv.h"
#include "models/schedule/lint.h"
#include "models/schedule/registry.h"
#include "models/schedule/timeline.h"
#include "sim/base/rng.h"

using namespace k3sim;

namespace {
std::vector<std::vector<std::string>> cells_of(const std::string& name) {
  std::ifstream in(std::string(K3SIM_TEST_DATA "/schedules/") + name, std::ios::binary);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    auto& row = rows.emplace_back();
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(',', at), line.size());
      row.push_back(line.substr(at, end - at));
      at = end + 1;
    }
  }
  return rows;
}

std::string joined(const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i > 0 ? "," : "") + row[i];
    out += "\n";
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : key_{.seed = seed, .purpose = 5, .entity = 0} {}

  std::string mutate(std::vector<std::vector<std::string>> rows) {
    const std::uint64_t changes = 1 + below(2);
    for (std::uint64_t i = 0; i < changes; ++i) change(rows);
    std::string text = joined(rows);
    if (below(8) == 0) text.resize(below(text.size()));
    if (below(8) == 0) text.insert(below(text.size() + 1), 1, static_cast<char>(below(256)));
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_below(key_, next_++, n); }

  void change(std::vector<std::vector<std::string>>& rows) {
    auto& row = rows[below(rows.size())];
    auto& other = rows[below(rows.size())];
    const std::size_t a = below(row.size()), b = below(other.size());
    const char* const odd[] = {"",
                               "0F",
                               "2BW0",
                               "0F99999999999999999999",
                               "16000F1000000",
                               "0UNSHARD",
                               "1REDUCE_GRAD",
                               "0F0 x",
                               "(0F0;0B0)OVERLAP_F_B",
                               "((0F0;0B0)OVERLAP_F_B;1F1)OVERLAP_F_B",
                               "-1F0",
                               "0SEND_F0",
                               "1RECV_F0",
                               "\"0F0"};
    switch (below(7)) {
      case 0:
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(a));
        if (row.empty()) row.emplace_back();
        break;
      case 1:
        row.insert(row.begin() + static_cast<std::ptrdiff_t>(a), row[a]);
        break;
      case 2:
        std::swap(row[a], other[b]);
        break;
      case 3:
        std::swap(row[a], row[below(row.size())]);
        break;
      case 4:
        row[a] = odd[below(std::size(odd))];
        break;
      case 5:
        if (!row[a].empty()) row[a][below(row[a].size())] = static_cast<char>('0' + below(10));
        break;
      default:
        if (a + 1 < row.size()) std::swap(row[a], row[a + 1]);
        break;
    }
  }

  RandomKey key_;
  std::uint64_t next_ = 0;
};
}  // namespace

TEST_CASE("mutated schedule files are rejected with a reason or proven valid") {
  int rejected = 0, valid = 0, deadlocked = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const char* const files[] = {"dualpipev_4rank_10mb.csv", "torchtitan_custom_2rank.csv",
                                 "zb1p_2rank_legacy_dialect_comms.csv"};
    const std::string text = Mutator(seed).mutate(cells_of(files[seed % 3]));
    const CsvSchedule file = parse_schedule_csv(text, "mutated.csv");
    CHECK(file.problems.size() == file.places.size());
    if (!file.problems.empty()) {
      ++rejected;
      continue;
    }
    const LintReport report = lint_schedule(file.schedule);
    CHECK(report.valid == report.problems.empty());
    if (!report.valid) {
      deadlocked += report.problems.front().what.rfind("deadlock", 0) == 0;
      ++rejected;
      continue;
    }
    ++valid;
    CHECK(time_schedule(file.schedule, {.stages = {StageTimes{}}}).complete);
    const CsvSchedule again = parse_schedule_csv(write_schedule_csv(file.schedule), "again.csv");
    CHECK(again.schedule.actions == file.schedule.actions);
  }
  CHECK(rejected + valid == 200);
  CHECK(rejected > 100);   // the mutations do break files
  CHECK(valid > 5);        // and harmless ones are not refused
  CHECK(deadlocked >= 3);  // and some break only the order between ranks
}

TEST_CASE("swapping neighbours in a generated schedule never splits lint and the timer") {
  // Two independent executions must agree: lint's queue drain and the timer's dataflow.
  const RandomKey key{.seed = 1, .purpose = 6, .entity = 0};
  std::uint64_t draw = 0;
  int complete = 0, stuck = 0;
  for (const char* name : {"zb_v", "interleaved", "zb_h1", "dualpipe_v"}) {
    const ScheduleSpec spec{
        .name = name, .ranks = 3, .chunks = std::string(name) == "interleaved" ? 2 : 1, .microbatches = 6};
    for (int i = 0; i < 60; ++i) {
      Schedule s = make_schedule(spec);
      for (int swaps = 0; swaps < 3; ++swaps) {
        auto& row = s.actions[random_below(key, draw++, s.actions.size())];
        const std::size_t a = random_below(key, draw++, row.size()),
                          b = std::min(row.size() - 1, a + 1 + random_below(key, draw++, 4));
        std::swap(row[a], row[b]);
      }
      const LintReport report = lint_schedule(s);
      const bool runs = time_schedule(s, {.stages = {StageTimes{}}}).complete;
      if (report.valid) CHECK(runs);
      if (!report.valid && report.problems.front().what.rfind("deadlock", 0) == 0) CHECK_FALSE(runs);
      (report.valid ? complete : stuck) += 1;
    }
  }
  CHECK(complete > 20);
  CHECK(stuck > 20);
}
