// Source: Megatron-LM pipeline_parallel_layer_layout.py (parse_str_to_list), arguments.py (moe_freq_type).
#include "tools/import/pipeline_layout.h"

#include <cctype>

namespace k3sim {
namespace {

constexpr std::size_t kMostItems = 100000;

// item := (letter | '|' | '(' items ')') ['*' number]
class LayoutParser {
 public:
  explicit LayoutParser(const std::string& text) {
    for (char c : text)
      if (!std::isspace(static_cast<unsigned char>(c)) && c != ',' && c != '\'' && c != '"') text_ += c;
  }
  std::optional<std::string> run() {
    const std::string all = items();
    return good_ && at_ == text_.size() && !all.empty() ? std::optional<std::string>(all) : std::nullopt;
  }

 private:
  std::string items() {
    std::string out;
    while (good_ && at_ < text_.size() && text_[at_] != ')') out += repeated();
    return out;
  }
  std::string repeated() {
    std::string item;
    if (text_[at_] == '(') {
      ++at_;
      item = items();
      if (at_ >= text_.size() || text_[at_++] != ')') good_ = false;
    } else if (std::string("EtmL|").find(text_[at_]) != std::string::npos) {
      item = text_[at_++];
    } else {
      good_ = false;
    }
    if (at_ >= text_.size() || text_[at_] != '*') return item;
    ++at_;
    std::size_t times = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && times < kMostItems)
      times = times * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    std::string out;
    for (std::size_t i = 0; i < times && out.size() < kMostItems; ++i) out += item;
    return out;
  }

  std::string text_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// sum := term {'+' term};  term := atom ['*' number];  atom := '[' numbers ']' | '(' sum ')'
class PatternParser {
 public:
  explicit PatternParser(const std::string& text) {
    for (char c : text)
      if (!std::isspace(static_cast<unsigned char>(c)) && c != '\'' && c != '"' && c != '\\') text_ += c;
  }
  std::optional<std::vector<int>> run() {
    std::vector<int> all = sum();
    if (!good_ || at_ != text_.size() || all.empty()) return std::nullopt;
    return all;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int number() {
    int value = 0;
    if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_]))) good_ = false;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && value < 100000)
      value = value * 10 + (text_[at_++] - '0');
    return value;
  }
  std::vector<int> sum() {
    std::vector<int> out = term();
    while (good_ && take('+')) {
      const std::vector<int> next = term();
      out.insert(out.end(), next.begin(), next.end());
    }
    return out;
  }
  std::vector<int> term() {
    const std::vector<int> one = atom();
    if (!take('*')) return one;
    std::vector<int> out;
    const int times = number();
    for (int i = 0; i < times && out.size() < kMostItems; ++i) out.insert(out.end(), one.begin(), one.end());
    return out;
  }
  std::vector<int> atom() {
    std::vector<int> out;
    if (take('(')) {
      out = sum();
      if (!take(')')) good_ = false;
    } else if (take('[')) {
      do out.push_back(number());
      while (good_ && take(','));
      if (!take(']')) good_ = false;
    } else {
      good_ = false;
    }
    return out;
  }

  std::string text_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

std::optional<std::vector<int>> parse_pipeline_layout(const std::string& text) {
  const std::optional<std::string> items = LayoutParser(text).run();
  if (!items) return std::nullopt;
  std::string plain = *items;
  if (plain.back() == '|') plain.pop_back();
  std::vector<int> stages(1, 0);
  for (char c : plain) {
    if (c == '|')
      stages.push_back(0);
    else if (c == 't')
      ++stages.back();
  }
  return stages;
}

std::optional<std::vector<int>> parse_layer_pattern(const std::string& text) {
  return PatternParser(text).run();
}

}  // namespace k3sim
