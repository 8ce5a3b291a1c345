// One pass over the lines; every field is checked before any is used, so that one bad line yields all its problems.
// A pair given twice is found by remembering the line of every (layer, micro-batch, rank, expert).
// Source: product-spec section 2 (form of errors) and section 7 (columns). Valid for files that fit in memory.
#include "models/moe/counts_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

constexpr std::size_t kMaxProblems = 20;
enum Column : std::size_t { kLayer, kMicroBatch, kRank, kExpert, kTokens, kColumns };
const std::array<std::string, kColumns> kNames{"layer", "micro_batch", "rank", "expert", "tokens"};

struct Field {
  std::string_view text;
  int column = 1;  // 1-based position in the line
};

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::vector<Field> split(std::string_view line) {
  std::vector<Field> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    const std::string_view raw = line.substr(begin, comma == line.npos ? line.npos : comma - begin);
    fields.push_back({trim(raw), static_cast<int>(begin) + 1});
    if (comma == line.npos) return fields;
    begin = comma + 1;
  }
}

class Parser {
 public:
  Parser(std::string file, int experts, int ranks) : file_(std::move(file)), experts_(experts), ranks_(ranks) {}

  void line(std::string_view raw) {
    ++line_;
    if (line_ == 1 && raw.starts_with("\xEF\xBB\xBF")) raw.remove_prefix(3);  // byte-order mark
    const std::string_view text = trim(raw);
    if (text.empty() || text.front() == '#') return;
    if (position_.empty()) {
      header(split(raw));
    } else if (header_ok_) {
      row(split(raw));
    }
  }

  std::vector<RoutedCounts> finish() {
    if (position_.empty()) problem(0, "", "the file is empty; expected a header line rank,expert,tokens");
    if (dropped_ > 0) problems_.back().hint = fmt::format("and {} more problems", dropped_);
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    std::vector<RoutedCounts> out;
    for (auto& [id, counts] : tables_) out.push_back({{id.first, id.second}, std::move(counts)});
    if (out.empty()) throw ConfigError("no counts below the header", "", {file_, line_, 0});
    return out;
  }

 private:
  void problem(int column, std::string key, std::string what, std::string hint = {}) {
    if (problems_.size() >= kMaxProblems) {
      ++dropped_;
      return;
    }
    Problem p;
    p.place = {file_, line_, column};
    p.key = std::move(key);
    p.what = std::move(what);
    p.hint = std::move(hint);
    problems_.push_back(std::move(p));
  }

  void header(const std::vector<Field>& fields) {
    const std::size_t before = problems_.size();
    std::array<bool, kColumns> seen{};
    for (const Field& f : fields) {
      const auto found = std::find(kNames.begin(), kNames.end(), f.text);
      position_.push_back(static_cast<std::size_t>(found - kNames.begin()));
      if (found == kNames.end()) {
        problem(f.column, "",
                fmt::format("unknown column '{}'; the columns are rank,expert,tokens and optionally layer,micro_batch",
                            f.text),
                did_you_mean(f.text, {kNames.begin(), kNames.end()}));
      } else if (std::exchange(seen[position_.back()], true)) {
        problem(f.column, "", fmt::format("column '{}' appears twice", f.text));
      }
    }
    for (const Column c : {kRank, kExpert, kTokens}) {
      if (!seen[c]) problem(1, "", fmt::format("column '{}' is missing in the header", kNames[c]));
    }
    header_ok_ = problems_.size() == before;
  }

  bool number(const Field& f, Column c, std::int64_t& value) {
    const char* end = f.text.data() + f.text.size();
    const auto [stop, failure] = std::from_chars(f.text.data(), end, value);
    if (failure == std::errc() && stop == end && !f.text.empty()) return true;
    problem(f.column, kNames[c],
            failure == std::errc::result_out_of_range ? fmt::format("{} is too large", f.text)
                                                      : fmt::format("'{}' is not a whole number", f.text));
    return false;
  }

  bool in_range(const Field& f, Column c, std::int64_t value) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
    const std::int64_t limit = c == kRank ? ranks_ - 1 : c == kExpert ? experts_ - 1 : kMax;
    if (value >= 0 && value <= limit) return true;
    if (c == kRank || c == kExpert) {
      problem(f.column, kNames[c], fmt::format("{} is outside 0 ... {} ({} {}s)", value, limit, limit + 1, kNames[c]));
    } else {
      problem(f.column, kNames[c],
              value < 0 ? fmt::format("{} is negative", value) : fmt::format("{} is too large", value));
    }
    return false;
  }

  void row(const std::vector<Field>& fields) {
    if (fields.size() != position_.size()) {
      problem(1, "", fmt::format("{} fields, but the header has {} columns", fields.size(), position_.size()));
      return;
    }
    std::array<std::int64_t, kColumns> v{};
    bool good = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto c = static_cast<Column>(position_[i]);
      if (!number(fields[i], c, v[c]) || !in_range(fields[i], c, v[c])) good = false;
    }
    if (good) store(v);
  }

  void store(const std::array<std::int64_t, kColumns>& v) {
    const std::pair<int, int> id{static_cast<int>(v[kLayer]), static_cast<int>(v[kMicroBatch])};
    const auto [it, fresh] = tables_.try_emplace(id, ranks_, experts_);
    auto& lines = first_line_[id];
    if (fresh) lines.assign(it->second.tokens.size(), 0);
    const std::size_t at = it->second.index(static_cast<int>(v[kRank]), static_cast<int>(v[kExpert]));
    if (lines[at] != 0) {
      problem(1, "", fmt::format("rank {}, expert {} was already given in line {}", v[kRank], v[kExpert], lines[at]));
      return;
    }
    lines[at] = line_;
    it->second.tokens[at] = static_cast<std::int32_t>(v[kTokens]);
    std::int64_t& sum = total_[id];
    sum += v[kTokens];
    if (sum > std::numeric_limits<std::int32_t>::max() &&
        sum - v[kTokens] <= std::numeric_limits<std::int32_t>::max()) {
      problem(1, kNames[kTokens], fmt::format("the sum reaches {}, more than 2^31 - 1 rows", sum));
    }
  }

  std::string file_;
  int experts_, ranks_;
  int line_ = 0;
  bool header_ok_ = false;
  std::size_t dropped_ = 0;
  std::vector<std::size_t> position_;  // meaning of every column of the file
  std::map<std::pair<int, int>, ExpertCounts> tables_;
  std::map<std::pair<int, int>, std::vector<int>> first_line_;
  std::map<std::pair<int, int>, std::int64_t> total_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<RoutedCounts> parse_counts_csv(std::string_view text, const std::string& file, int experts, int ranks) {
  Parser parser(file, experts, ranks);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    parser.line(text.substr(0, end));
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  }
  return parser.finish();
}

std::vector<RoutedCounts> read_counts_csv(const std::string& path, int experts, int ranks) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError("cannot read this file", "", {path, 0, 0});
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw ConfigError("reading failed", "", {path, 0, 0});
  return parse_counts_csv(text, path, experts, ranks);
}

std::vector<std::string> topk_conflicts(const ExpertCounts& counts, int topk) {
  std::vector<std::string> out;
  const std::vector<std::int64_t> rows = counts.per_source_rank();
  for (int r = 0; r < counts.ranks; ++r) {
    const std::int64_t total = rows[static_cast<std::size_t>(r)];
    if (total % topk != 0) {
      out.push_back(fmt::format("rank {} routes {} entries, which is no multiple of top-{}", r, total, topk));
      continue;
    }
    for (int e = 0; e < counts.experts; ++e) {
      if (counts.at(r, e) <= total / topk) continue;
      out.push_back(fmt::format("rank {} has {} tokens but {} entries for expert {}; a token takes an expert once", r,
                                total / topk, counts.at(r, e), e));
      break;
    }
  }
  return out;
}

}  // namespace k3sim
