// Cells of the schedule CSV: splitting, parsing, dialect, and the schedule that they make.
// Source: see csv.h.
#include "models/schedule/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace k3sim {

namespace {
constexpr int kMostStages = 1 << 14, kMostMicrobatches = 1 << 20;
constexpr std::string_view kOverlap = "OVERLAP_F_B";

struct KindName {
  std::string_view text;
  ActionKind kind;
  bool microbatch;
};
// BW is the legacy full backward; it stays apart from B until the dialect is known.
constexpr std::array<KindName, 11> kKinds = {{{"F", ActionKind::kForward, true},
                                              {"I", ActionKind::kInputGrad, true},
                                              {"W", ActionKind::kWeightGrad, true},
                                              {"B", ActionKind::kBackward, true},
                                              {"UNSHARD", ActionKind::kUnshard, false},
                                              {"RESHARD", ActionKind::kReshard, false},
                                              {"REDUCE_GRAD", ActionKind::kReduceGrad, false},
                                              {"SEND_F", ActionKind::kSendForward, true},
                                              {"RECV_F", ActionKind::kRecvForward, true},
                                              {"SEND_B", ActionKind::kSendBackward, true},
                                              {"RECV_B", ActionKind::kRecvBackward, true}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::string quoted(std::string_view cell) {
  std::string out;
  for (char c : cell.substr(0, 60))
    out += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return "'" + out + (cell.size() > 60 ? "...'" : "'");
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  CsvSchedule run() {
    split();
    translate();
    finish();
    return std::move(out_);
  }

 private:
  void problem(int rank, int index, std::size_t column, const std::string& what) {
    out_.problems.push_back({rank, index, what});
    out_.places.push_back({file_, rank + 1, static_cast<int>(column) + 1});
  }

  void split() {
    std::size_t at = 0;
    int rank = 0;
    while (at < text_.size()) {
      std::size_t end = text_.find('\n', at);
      out_.final_newline = end != std::string_view::npos;
      if (end == std::string_view::npos) end = text_.size();
      std::string_view line = text_.substr(at, end - at);
      const bool crlf = !line.empty() && line.back() == '\r';
      if (rank == 0) out_.crlf = crlf;
      if (crlf != out_.crlf && out_.final_newline) out_.exact = false;
      if (crlf) line.remove_suffix(1);
      row(line, rank++);
      at = end + 1;
    }
    if (rank == 0) problem(-1, -1, 0, "the file is empty");
  }

  void row(std::string_view line, int rank) {
    auto& actions = out_.schedule.actions.emplace_back();
    if (line.empty()) return problem(rank, -1, 0, fmt::format("rank {} has no actions: the line is empty", rank));
    std::size_t at = 0;
    for (int index = 0;; ++index) {
      std::size_t end = line.find(',', at);
      if (end == std::string_view::npos) end = line.size();
      std::string_view cell = line.substr(at, end - at);
      std::string_view bare = trimmed(cell);
      if (bare.size() >= 2 && bare.front() == '"' && bare.back() == '"')
        bare = trimmed(bare.substr(1, bare.size() - 2));
      if (bare.size() != cell.size()) out_.exact = false;
      actions.push_back(parse_cell(bare, rank, index, at));
      if (end == line.size()) break;
      at = end + 1;
    }
  }

  Action parse_cell(std::string_view cell, int rank, int index, std::size_t column) {
    if (cell.empty()) return {};
    std::string why;
    const std::optional<Action> action = cell.front() == '(' ? parse_pair(cell, why) : parse_plain(cell, why);
    if (action) return *action;
    problem(rank, index, column, fmt::format("cell {}: {}", quoted(cell), why));
    return {};
  }

  static bool number(std::string_view digits, int most, int& value, const char* name, std::string& why) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && value < most) return true;
    why = fmt::format("{} {} is not below {}", name, digits, most);
    return false;
  }

  std::optional<Action> parse_plain(std::string_view cell, std::string& why) {
    const std::string_view whole = cell;
    std::size_t digits = 0;
    while (digits < cell.size() && is_digit(cell[digits])) ++digits;
    if (digits == 0) {
      why = "expected STAGE TYPE [MICROBATCH], for example 2F0";
      return std::nullopt;
    }
    int stage = 0;
    if (!number(cell.substr(0, digits), kMostStages, stage, "stage", why)) return std::nullopt;
    cell.remove_prefix(digits);
    std::size_t letters = 0;
    while (letters < cell.size() && !is_digit(cell[letters])) ++letters;
    const std::string_view type = cell.substr(0, letters), rest = cell.substr(letters);
    const bool full = type == "BW";
    const auto* known =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& k) { return k.text == (full ? "B" : type); });
    if (known == kKinds.end()) {
      why = fmt::format("unknown action type {}", quoted(type));
      return std::nullopt;
    }
    if (!known->microbatch && !rest.empty()) {
      why = fmt::format("{} takes no micro-batch", type);
      return std::nullopt;
    }
    int microbatch = -1;
    if (known->microbatch && rest.empty()) {
      why = fmt::format("{} needs a micro-batch", type);
      return std::nullopt;
    }
    if (!std::all_of(rest.begin(), rest.end(), is_digit)) {
      why = fmt::format("trailing characters after {}", quoted(whole.substr(0, digits + letters)));
      return std::nullopt;
    }
    if (known->microbatch && !number(rest, kMostMicrobatches, microbatch, "micro-batch", why)) return std::nullopt;
    out_.exact = out_.exact && canonical(whole.substr(0, digits)) && canonical(rest);
    note(known->kind, full);
    return make_action(known->kind, stage, microbatch, full ? kLegacyFull : std::uint8_t{0});
  }

  static bool canonical(std::string_view digits) { return digits.size() < 2 || digits.front() != '0'; }

  std::optional<Action> parse_pair(std::string_view cell, std::string& why) {
    const std::size_t close = cell.find(')');
    if (close == std::string_view::npos || cell.substr(close + 1) != kOverlap) {
      why = "expected (action;action)OVERLAP_F_B";
      return std::nullopt;
    }
    const std::string_view inner = cell.substr(1, close - 1);
    const std::size_t middle = inner.find(';');
    if (middle == std::string_view::npos || inner.find(';', middle + 1) != std::string_view::npos) {
      why = "an overlap of exactly two actions can be expressed here";
      return std::nullopt;
    }
    const std::string_view left = trimmed(inner.substr(0, middle)), right = trimmed(inner.substr(middle + 1));
    if (left.size() + right.size() + 1 != inner.size()) out_.exact = false;
    const auto first = parse_plain(left, why);
    if (!first) return std::nullopt;
    const auto second = parse_plain(right, why);
    if (!second) return std::nullopt;
    if (!is_plain_compute(first->kind) || !is_plain_compute(second->kind)) {
      why = "only F, I, B and W can be overlapped";
      return std::nullopt;
    }
    Action pair = make_overlap(*first, *second);
    pair.flags = static_cast<std::uint8_t>((first->flags != 0 ? 1 : 0) | (second->flags != 0 ? 2 : 0));
    return pair;
  }

  void note(ActionKind kind, bool full) {
    saw_full_ = saw_full_ || full;
    saw_input_ = saw_input_ || kind == ActionKind::kInputGrad;
    saw_weight_ = saw_weight_ || kind == ActionKind::kWeightGrad;
    out_.transfers = out_.transfers || !is_plain_compute(kind);
  }

  // BW anywhere, or W without any I: the older spelling, in which B is the input gradient.
  void translate() {
    out_.legacy = saw_full_ || (saw_weight_ && !saw_input_);
    if (saw_full_ && saw_input_)
      problem(-1, -1, 0, "the file mixes BW (legacy full backward) with I (current input gradient)");
    auto renamed = [&](ActionKind kind, bool full) {
      return kind == ActionKind::kBackward && !full && out_.legacy ? ActionKind::kInputGrad : kind;
    };
    for (auto& row : out_.schedule.actions)
      for (Action& a : row) {
        if (a.kind == ActionKind::kOverlap) {
          a.first_kind = renamed(a.first_kind, (a.flags & 1) != 0);
          a.second_kind = renamed(a.second_kind, (a.flags & 2) != 0);
        } else {
          a.kind = renamed(a.kind, a.flags == kLegacyFull);
        }
        a.flags = kFlagNone;
      }
  }

  void finish() {
    Schedule& s = out_.schedule;
    s.name = file_;
    s.ranks = static_cast<int>(s.actions.size());
    for (int rank = 0; rank < s.ranks; ++rank) {
      auto& row = s.actions[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i].kind == ActionKind::kIdle && out_.transfers && out_.problems.empty())
          problem(rank, static_cast<int>(i), 0, "an idle cell in a file with transfers, which must be complete");
        for_each_part(row[i], [&](const Action& part) {
          s.stages = std::max(s.stages, part.stage + 1);
          s.microbatches = std::max(s.microbatches, part.microbatch + 1);
        });
      }
    }
    s.rank_of_stage.assign(static_cast<std::size_t>(s.stages), -1);
    for (int rank = s.ranks - 1; rank >= 0; --rank)
      for (const Action& a : s.actions[static_cast<std::size_t>(rank)])
        for_each_part(a, [&](const Action& part) {
          if (part.stage >= 0) s.rank_of_stage[static_cast<std::size_t>(part.stage)] = rank;
        });
  }

  static constexpr std::uint8_t kLegacyFull = 1;
  std::string_view text_;
  const std::string& file_;
  bool saw_full_ = false, saw_input_ = false, saw_weight_ = false;
  CsvSchedule out_;
};
}  // namespace

std::string CsvSchedule::dialect() const {
  return std::string(legacy ? "legacy_" : "") + (transfers ? "compute_comms" : "compute_only");
}

CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file) {
  return Parser(text, file).run();
}

CsvSchedule read_schedule_csv(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError("cannot open the schedule file", "", Place{file, 0, 0});
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  CsvSchedule parsed = parse_schedule_csv(text, file);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < parsed.problems.size(); ++i)
    problems.push_back({parsed.places[i], "", parsed.problems[i].what, ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return parsed;
}

}  // namespace k3sim
