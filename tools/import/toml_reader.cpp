// Source: TOML 1.0; see toml_reader.h.
#include "tools/import/toml_reader.h"

#include <fmt/format.h>

#include <cctype>

#include "sim/base/error.h"

namespace k3sim {
namespace {

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::map<std::string, TomlValue> run() {
    for (skip(true); at_ < text_.size(); skip(true)) {
      if (text_[at_] == '[')
        table();
      else
        assignment();
    }
    return std::move(values_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw ConfigError(what, {}, Place{file_, line_, 0}); }

  void skip(bool line_ends) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && line_ends))
        line_ += text_[at_++] == '\n' ? 1 : 0;
      else
        return;
    }
  }

  std::string key() {
    std::string out;
    skip(false);
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        out += quoted();
      } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.') {
        out += c;
        ++at_;
      } else {
        break;
      }
    }
    if (out.empty()) fail("a key is missing");
    skip(false);
    return out;
  }

  void expect(char c) {
    skip(false);
    if (at_ >= text_.size() || text_[at_] != c) fail(fmt::format("'{}' is missing", c));
    ++at_;
  }

  void table() {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '[') fail("arrays of tables are not supported");
    table_ = key() + ".";
    expect(']');
  }

  void assignment() {
    const std::string name = table_ + key();
    TomlValue value;
    value.line = line_;
    expect('=');
    skip(false);
    if (at_ < text_.size() && text_[at_] == '[')
      array(value);
    else
      value.values.push_back(scalar());
    if (!values_.emplace(name, value).second) fail(fmt::format("'{}' is given twice", name));
    skip(false);
    if (at_ < text_.size() && text_[at_] != '\n') fail(fmt::format("unexpected text after '{}'", name));
  }

  void array(TomlValue& value) {
    ++at_;
    for (skip(true); at_ < text_.size() && text_[at_] != ']'; skip(true)) {
      if (text_[at_] == ',')
        ++at_;
      else if (text_[at_] == '[')
        array(value);
      else
        value.values.push_back(scalar());
    }
    if (at_ >= text_.size()) fail("an array does not end");
    ++at_;
  }

  std::string quoted() {
    const char end = text_[at_++];
    if (text_.compare(at_, 2, std::string(2, end)) == 0) fail("multi-line strings are not supported");
    std::string out;
    while (at_ < text_.size() && text_[at_] != end && text_[at_] != '\n') {
      if (text_[at_] == '\\' && end == '"' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (at_ >= text_.size() || text_[at_] != end) fail("a string does not end");
    ++at_;
    return out;
  }

  std::string scalar() {
    if (text_[at_] == '"' || text_[at_] == '\'') return quoted();
    if (text_[at_] == '{') fail("inline tables are not supported");
    std::string out;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  std::string("+-._:").find(text_[at_]) != std::string::npos))
      out += text_[at_++];
    if (out.empty()) fail("a value is missing");
    return out;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string table_;
  std::map<std::string, TomlValue> values_;
};

}  // namespace

std::map<std::string, TomlValue> read_toml(const std::string& text, const std::string& file) {
  return Reader(text, file).run();
}

}  // namespace k3sim
