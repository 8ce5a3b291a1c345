// Source: POSIX shell command language; see shell_expand.h.
#include "tools/import/shell_expand.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

namespace k3sim::shell {
namespace {

const std::string kMarkBegin = "\x01", kMarkEnd = "\x02";

bool name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Recursive descent over + - * / % ( ) comparisons and ?:; names are variables. Integers only, as in the shell.
class Calculator {
 public:
  Calculator(const std::string& text, const Variables& variables) : text_(text), variables_(variables) {}
  std::optional<std::int64_t> run() {
    const std::optional<std::int64_t> value = choice();
    skip();
    return good_ && at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '"')) ++at_;
  }
  bool take(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  std::int64_t choice() {
    const std::int64_t condition = comparison();
    if (!take("?")) return condition;
    const std::int64_t yes = choice();
    if (!take(":")) good_ = false;
    const std::int64_t no = choice();
    return condition != 0 ? yes : no;
  }
  std::int64_t comparison() {
    const std::int64_t left = sum();
    if (take("==")) return left == sum();
    if (take("!=")) return left != sum();
    if (take(">=")) return left >= sum();
    if (take("<=")) return left <= sum();
    if (take(">")) return left > sum();
    if (take("<")) return left < sum();
    return left;
  }
  std::int64_t sum() {
    std::int64_t value = product();
    for (;;) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        return value;
    }
  }
  std::int64_t product() {
    std::int64_t value = atom();
    for (;;) {
      const char op = take("*") ? '*' : take("/") ? '/' : take("%") ? '%' : '\0';
      if (op == '\0') return value;
      const std::int64_t right = atom();
      if (op == '*')
        value *= right;
      else if (right == 0)
        good_ = false;
      else
        value = op == '/' ? value / right : value % right;
    }
  }
  std::int64_t atom() {
    if (take("(")) {
      const std::int64_t value = choice();
      if (!take(")")) good_ = false;
      return value;
    }
    if (take("-")) return -atom();
    skip();
    std::string token;
    while (at_ < text_.size() && name_char(text_[at_])) token += text_[at_++];
    return number(token);
  }
  std::int64_t number(const std::string& token) {
    std::string digits;
    for (char c : token)
      if (c != '_') digits += c;
    const bool numeric = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
    if (numeric && digits.size() < 18) return std::stoll(digits);
    const auto it = variables_.find(token);
    if (!token.empty() && it != variables_.end() && !it->second.empty() && ++depth_ < 20)
      if (const auto value = Calculator(it->second.front(), variables_).run()) return *value;
    good_ = false;
    return 0;
  }

  std::string text_;
  const Variables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool good_ = true;
};

class Expander {
 public:
  Expander(const std::string& raw, int line, const Variables& variables)
      : raw_(raw), line_(line), variables_(variables) {}

  std::vector<ShellWord> run() {
    while (at_ < raw_.size()) step();
    finish_word();
    return std::move(words_);
  }

 private:
  void step() {
    const char c = raw_[at_];
    if (c == '\'' && !quoted_) {
      const std::size_t end = raw_.find('\'', at_ + 1);
      append(raw_.substr(at_ + 1, end == std::string::npos ? end : end - at_ - 1));
      started_ = true;
      at_ = end == std::string::npos ? raw_.size() : end + 1;
    } else if (c == '"') {
      quoted_ = !quoted_;
      started_ = true;
      ++at_;
    } else if (c == '\\' && at_ + 1 < raw_.size()) {
      append(std::string(1, raw_[at_ + 1]));
      at_ += 2;
    } else if (c == '$') {
      dollar();
    } else if (c == '`') {
      const std::size_t end = raw_.find('`', at_ + 1);
      unknown("command-substitution");
      at_ = end == std::string::npos ? raw_.size() : end + 1;
    } else {
      append(std::string(1, c));
      ++at_;
    }
  }

  void dollar() {
    if (raw_.compare(at_, 3, "$((") == 0) {
      const std::string inside = balanced(at_ + 1);
      const std::string value = arithmetic(inside.substr(1, inside.size() - 2), variables_);
      value.empty() ? unknown("arithmetic") : append(value);
    } else if (raw_.compare(at_, 2, "$(") == 0) {
      balanced(at_ + 1);
      unknown("command-substitution");
    } else if (raw_.compare(at_, 2, "${") == 0) {
      const std::size_t end = closing_brace(at_ + 2);
      const std::string inside = raw_.substr(at_ + 2, end - at_ - 2);
      at_ = std::min(end + 1, raw_.size());
      parameter(inside);
    } else {
      std::size_t end = at_ + 1;
      if (end < raw_.size() &&
          (std::isdigit(static_cast<unsigned char>(raw_[end])) || raw_[end] == '@' || raw_[end] == '*'))
        ++end;
      else
        while (end < raw_.size() && name_char(raw_[end])) ++end;
      const std::string name = raw_.substr(at_ + 1, end - at_ - 1);
      at_ = std::max(end, at_ + 1);
      name.empty() ? append("$") : parameter(name);
    }
  }

  // From an opening parenthesis at `from`: what is inside; at_ moves behind the closing one.
  std::string balanced(std::size_t from) {
    int depth = 0;
    for (std::size_t i = from; i < raw_.size(); ++i) {
      depth += raw_[i] == '(' ? 1 : raw_[i] == ')' ? -1 : 0;
      if (depth > 0) continue;
      at_ = i + 1;
      return raw_.substr(from + 1, i - from - 1);
    }
    at_ = raw_.size();
    return "()";
  }

  std::size_t closing_brace(std::size_t from) const {
    int depth = 1;
    for (std::size_t i = from; i < raw_.size(); ++i) {
      depth += raw_[i] == '{' ? 1 : raw_[i] == '}' ? -1 : 0;
      if (depth == 0) return i;
    }
    return raw_.size();
  }

  void parameter(const std::string& inside) {
    std::size_t end = 0;
    while (end < inside.size() && (name_char(inside[end]) || inside[end] == '@' || inside[end] == '*')) ++end;
    const std::string name = inside.substr(0, end);
    std::string rest = inside.substr(end);
    const bool whole_array = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (whole_array) rest = rest.substr(3);
    const auto it = variables_.find(name);
    const bool set = it != variables_.end() && !(it->second.size() == 1 && it->second.front().empty());
    if (set && rest.starts_with(":+")) return substitute(rest.substr(2));
    if (rest.starts_with(":+") || rest.starts_with("+")) return;
    if (it != variables_.end() && (set || (!rest.starts_with(":-") && !rest.starts_with(":="))))
      return whole_array ? append_array(it->second) : append_value(it->second.empty() ? "" : it->second.front());
    if (rest.starts_with(":-") || rest.starts_with(":=")) return substitute(rest.substr(2));
    if (rest.starts_with("-") || rest.starts_with("=")) return substitute(rest.substr(1));
    unknown(name);
  }

  void substitute(const std::string& raw) {
    for (const ShellWord& w : expand(quoted_ ? "\"" + raw + "\"" : raw, line_, variables_)) append(w.text);
  }

  void append_array(const std::vector<std::string>& elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) finish_word();
      started_ = true;
      append_value(elements[i]);
    }
  }

  // Unquoted values split into words at blanks.
  void append_value(const std::string& value) {
    if (quoted_) return append(value);
    for (char c : value) {
      if (std::isspace(static_cast<unsigned char>(c)))
        finish_word();
      else
        append(std::string(1, c));
    }
  }

  void append(const std::string& text) {
    current_.text += text;
    started_ = started_ || !text.empty();
  }
  void unknown(const std::string& name) {
    current_.text += kMarkBegin + name + kMarkEnd;
    started_ = true;
  }
  void finish_word() {
    if (started_) {
      current_.line = line_;
      words_.push_back(std::move(current_));
    }
    current_ = {};
    started_ = false;
  }

  const std::string& raw_;
  int line_;
  const Variables& variables_;
  std::size_t at_ = 0;
  bool quoted_ = false, started_ = false;
  ShellWord current_;
  std::vector<ShellWord> words_;
};

}  // namespace

std::string arithmetic(const std::string& expression, const Variables& variables) {
  std::string plain;  // names without their $ and braces
  for (char c : expression)
    if (c != '$' && c != '{' && c != '}') plain += c;
  const std::optional<std::int64_t> value = Calculator(plain, variables).run();
  return value ? std::to_string(*value) : std::string();
}

void take_marks(ShellWord& word) {
  for (std::size_t at = word.text.find(kMarkBegin); at != std::string::npos; at = word.text.find(kMarkBegin)) {
    const std::size_t end = std::min(word.text.find(kMarkEnd, at), word.text.size() - 1);
    word.unknown.push_back(word.text.substr(at + 1, end - at - 1));
    word.text.erase(at, end - at + 1);
  }
}

std::vector<ShellWord> expand(const std::string& raw, int line, const Variables& variables) {
  return Expander(raw, line, variables).run();
}

}  // namespace k3sim::shell
