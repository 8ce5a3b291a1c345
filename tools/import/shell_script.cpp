// Logical lines -> raw words -> assignments, tests and commands. Source: POSIX shell command language; shell_script.h.
#include "tools/import/shell_script.h"

#include <algorithm>
#include <cctype>

#include "tools/import/shell_expand.h"

namespace k3sim {
namespace {

using shell::Variables;

struct RawWord {
  std::string text;  // quotes and expansions still in it
  int line = 0;
};

// Splits a script into commands of raw words; ';', '&&', '||', '|', '&' and line ends separate commands.
class Splitter {
 public:
  Splitter(const std::string& text, ShellScript& script) : text_(text), script_(script) {}

  std::vector<std::vector<RawWord>> run() {
    while (at_ < text_.size()) step();
    end_word();
    end_command();
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\' && next_is_line_end()) {
      at_ = text_.find('\n', at_) + 1;
      ++line_;
      if (paren_ == 0) end_word();
    } else if (c == '\\') {
      take(2);
    } else if (c == '\'') {
      quoted('\'');
    } else if (c == '"') {
      quoted('"');
    } else if (c == '`') {
      quoted('`');
    } else if (c == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '(' || text_[at_ + 1] == '{')) {
      bracketed(text_[at_ + 1], text_[at_ + 1] == '(' ? ')' : '}');
    } else if (c == '#' && word_.empty()) {
      comment();
    } else if (c == '(' && word_.ends_with("=")) {
      ++paren_;
      take(1);
      end_array_open();
    } else if (c == ')' && paren_ > 0) {
      end_word();
      --paren_;
      words_.push_back({")", line_});
      ++at_;
    } else {
      plain(c);
    }
  }

  void plain(char c) {
    if (c == '\n') {
      end_word();
      if (paren_ == 0) end_command();
      ++line_;
      ++at_;
      if (!here_end_.empty()) here_document();
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      end_word();
      ++at_;
    } else if (c == '<' && text_.compare(at_, 2, "<<") == 0 && text_.compare(at_, 3, "<<<") != 0) {
      begin_here();
    } else if ((c == ';' || c == '|' || (c == '&' && !word_.ends_with(">"))) && paren_ == 0) {
      end_word();
      end_command();
      ++at_;
    } else {
      take(1);
    }
  }

  bool next_is_line_end() const {
    std::size_t i = at_ + 1;
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t' || text_[i] == '\r')) ++i;
    return i < text_.size() && text_[i] == '\n';
  }
  void take(std::size_t n) {
    for (std::size_t i = 0; i < n && at_ < text_.size(); ++i) {
      if (text_[at_] == '\n') ++line_;
      word_ += text_[at_++];
    }
  }
  void quoted(char end) {
    take(1);
    while (at_ < text_.size() && text_[at_] != end) take(text_[at_] == '\\' && end == '"' ? 2 : 1);
    take(1);
  }
  void bracketed(char open, char close) {
    int depth = 0;
    take(1);
    do {
      depth += text_[at_] == open ? 1 : text_[at_] == close ? -1 : 0;
      take(1);
    } while (depth > 0 && at_ < text_.size());
  }
  void comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string body = text_.substr(at_, end - at_);
    if (body.starts_with("#SBATCH")) script_.batch.push_back(body.substr(7));
    at_ = end;
  }
  void begin_here() {
    end_word();
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\'' || text_[at_] == '"')) ++at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      here_end_ += text_[at_++];
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) ++at_;
  }
  void here_document() {
    std::string body;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      line.erase(0, line.find_first_not_of(" \t") == std::string::npos ? line.size() : line.find_first_not_of(" \t"));
      if (line == here_end_) break;
      body += line + "\n";
    }
    script_.documents.push_back(body);
    here_end_.clear();
  }
  void end_array_open() {
    words_.push_back({word_, line_});
    word_.clear();
  }
  void end_word() {
    if (!word_.empty()) words_.push_back({word_, line_});
    word_.clear();
  }
  void end_command() {
    if (!words_.empty()) commands_.push_back(std::move(words_));
    words_.clear();
  }

  const std::string& text_;
  ShellScript& script_;
  std::size_t at_ = 0;
  int line_ = 1, paren_ = 0;
  std::string word_, here_end_;
  std::vector<RawWord> words_;
  std::vector<std::vector<RawWord>> commands_;
};

class Runner {
 public:
  Runner(ShellScript& script, const std::map<std::string, std::string>& environment) : script_(script) {
    for (const auto& [name, value] : environment) variables_[name] = {value};
    given_ = environment;
  }

  void run(const std::vector<std::vector<RawWord>>& commands) {
    for (const std::vector<RawWord>& command : commands) one(command, 0);
    for (const auto& [name, value] : variables_) {
      std::vector<ShellWord>& words = script_.variables[name];
      if (value.empty()) continue;
      for (ShellWord& w : shell::expand("${" + name + "[@]}", lines_[name], variables_)) {
        shell::take_marks(w);
        words.push_back(std::move(w));
      }
    }
    for (std::string& body : script_.documents) {
      std::string expanded;
      for (ShellWord& w : shell::expand("\"" + escape_quotes(body) + "\"", 0, variables_)) {
        shell::take_marks(w);
        expanded += w.text;
      }
      body = expanded;
    }
  }

 private:
  struct Branch {
    bool taken = false;    // some branch of this `if` has run
    bool active = false;   // the current one runs
    bool outside = false;  // the surroundings run
  };

  static std::string escape_quotes(const std::string& text) {
    std::string out;
    for (char c : text) out += c == '"' ? std::string("\\\"") : std::string(1, c);
    return out;
  }

  bool running() const { return branches_.empty() || branches_.back().active; }

  void one(const std::vector<RawWord>& command, std::size_t from) {
    if (from >= command.size()) return;
    const std::string& first = command[from].text;
    if (first == "if") {
      const bool run_it = running();
      const bool yes = run_it && test(command, from + 1);
      branches_.push_back({yes, yes, run_it});
    } else if (first == "elif" && !branches_.empty()) {
      Branch& b = branches_.back();
      b.active = b.outside && !b.taken && test(command, from + 1);
      b.taken = b.taken || b.active;
    } else if (first == "else" && !branches_.empty()) {
      Branch& b = branches_.back();
      b.active = b.outside && !b.taken;
      b.taken = true;
      one(command, from + 1);
    } else if (first == "fi") {
      if (!branches_.empty()) branches_.pop_back();
    } else if (first == "then" || first == "export" || first == "eval" || first == "local" || first == "do" ||
               first == "exec" || first == "declare") {
      one(command, from + 1);
    } else if (running()) {
      assignments_or_command(command, from);
    }
  }

  static std::size_t assignment_end(const std::string& word) {
    std::size_t i = 0;
    while (i < word.size() && (std::isalnum(static_cast<unsigned char>(word[i])) || word[i] == '_')) ++i;
    if (i == 0 || std::isdigit(static_cast<unsigned char>(word[0]))) return 0;
    if (word.compare(i, 2, "+=") == 0) return i + 2;
    return i < word.size() && word[i] == '=' ? i + 1 : 0;
  }

  void assignments_or_command(const std::vector<RawWord>& command, std::size_t from) {
    std::size_t i = from;
    while (i < command.size()) {
      const std::size_t end = assignment_end(command[i].text);
      if (end == 0) break;
      i = assign(command, i, end);
    }
    std::vector<ShellWord> words;
    for (; i < command.size(); ++i)
      for (ShellWord& w : shell::expand(command[i].text, command[i].line, variables_)) {
        shell::take_marks(w);
        words.push_back(std::move(w));
      }
    if (!words.empty()) script_.commands.push_back(std::move(words));
  }

  std::size_t assign(const std::vector<RawWord>& command, std::size_t at, std::size_t value_at) {
    const std::string& word = command[at].text;
    const bool append = word[value_at - 2] == '+';
    const std::string name = word.substr(0, value_at - (append ? 2 : 1));
    std::vector<std::string> value;
    std::size_t next = at + 1;
    if (word.size() == value_at + 1 && word[value_at] == '(') {
      while (next < command.size() && command[next].text != ")") {
        for (ShellWord& w : shell::expand(command[next].text, command[next].line, variables_)) value.push_back(w.text);
        ++next;
      }
      ++next;
    } else {
      std::string text;
      for (const ShellWord& w : shell::expand(word.substr(value_at), command[at].line, variables_))
        text += (text.empty() ? "" : " ") + w.text;
      value.push_back(text);
    }
    lines_[name] = command[at].line;
    if (given_.count(name) > 0) return next;
    std::vector<std::string>& stored = variables_[name];
    if (!append)
      stored = value;
    else if (stored.size() == 1 && value.size() == 1 && word.back() != '(')
      stored.front() += value.front();
    else
      stored.insert(stored.end(), value.begin(), value.end());
    return next;
  }

  // [ a = b ], [ -z x ], [ a -eq b ]; a test that cannot be read counts as false, and so does an unknown value.
  bool test(const std::vector<RawWord>& command, std::size_t from) const {
    std::vector<std::string> t;
    for (std::size_t i = from; i < command.size(); ++i) {
      const std::string& raw = command[i].text;
      if (raw == "[" || raw == "[[" || raw == "]" || raw == "]]" || raw == "then") continue;
      std::vector<ShellWord> words = shell::expand("\"" + strip_quotes(raw) + "\"", 0, variables_);
      if (!words.empty()) shell::take_marks(words.front());
      t.push_back(words.empty() ? "" : words.front().text);
    }
    if (!t.empty() && t[0] == "!") return !evaluate({t.begin() + 1, t.end()});
    return evaluate(t);
  }
  static std::string strip_quotes(std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '"' || c == '\''; }), text.end());
    return text;
  }
  static bool evaluate(const std::vector<std::string>& t) {
    if (t.size() == 1) return !t[0].empty();
    if (t.size() == 2) return t[0] == "-z" ? t[1].empty() : t[0] == "-n" && !t[1].empty();
    if (t.size() < 3) return false;
    if (t[1] == "=" || t[1] == "==") return t[0] == t[2];
    if (t[1] == "!=") return t[0] != t[2];
    const auto number = [](const std::string& s) { return s.empty() ? 0.0 : std::atof(s.c_str()); };
    const double a = number(t[0]), b = number(t[2]);
    if (t[1] == "-eq") return a == b;
    if (t[1] == "-ne") return a != b;
    if (t[1] == "-gt" || t[1] == ">") return a > b;
    if (t[1] == "-ge") return a >= b;
    if (t[1] == "-lt" || t[1] == "<") return a < b;
    return t[1] == "-le" && a <= b;
  }

  ShellScript& script_;
  Variables variables_;
  std::map<std::string, std::string> given_;
  std::map<std::string, int> lines_;
  std::vector<Branch> branches_;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::map<std::string, std::string>& environment) {
  ShellScript script;
  const std::vector<std::vector<RawWord>> commands = Splitter(text, script).run();
  Runner(script, environment).run(commands);
  return script;
}

}  // namespace k3sim
