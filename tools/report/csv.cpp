#include "tools/report/csv.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace k3sim {

namespace {

template <class Fields>
void append_record(std::string& out, const Fields& fields) {
  bool first = true;
  for (const auto& f : fields) {
    if (!first) out += ',';
    out += csv_field(f);
    first = false;
  }
  out += "\r\n";
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv_number(double v) {
  return std::isfinite(v) ? fmt::format("{:.9g}", v == 0 ? 0.0 : v) : std::string();
}

void CsvTable::add(std::vector<std::string> fields) {
  CS_CHECK(fields.size() == columns_.size(), "{} fields for {} columns", fields.size(), columns_.size());
  rows_.push_back(std::move(fields));
}

std::vector<std::string> csv_names(const std::vector<CsvColumn>& columns) {
  std::vector<std::string> out;
  for (const CsvColumn& c : columns) out.push_back(c.name);
  return out;
}

std::string csv_record(const std::vector<std::string>& fields) {
  std::string out;
  append_record(out, fields);
  return out;
}

std::string csv_header(const std::vector<CsvColumn>& columns) {
  return csv_record(csv_names(columns));
}

std::string CsvTable::text() const {
  std::string out = csv_header(columns_);
  for (const auto& row : rows_) append_record(out, row);
  return out;
}

std::string data_dictionary_csv(const std::vector<CsvFile>& files) {
  CsvTable out({{"file", "text", ""},
                {"column", "text", ""},
                {"unit", "text", ""},
                {"source", "text", ""},
                {"meaning", "text", ""}});
  for (const CsvFile& file : files)
    for (const CsvColumn& c : file.columns) out.add({file.name, c.name, c.unit, c.source, c.what});
  return out.text();
}

namespace {

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
  }

  CsvData run() {
    CsvData out;
    while (at_ < text_.size()) {
      std::vector<std::string> r = record();
      if (out.header.empty()) {
        out.header = std::move(r);
      } else if (r.size() == out.header.size()) {
        out.rows.push_back(std::move(r));
      } else {
        fail(fmt::format("{} fields, the header has {}", r.size(), out.header.size()));
      }
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("line {}: {}", line_, what), file_);
  }

  std::vector<std::string> record() {
    std::vector<std::string> fields;
    ++line_;
    while (true) {
      fields.push_back(field());
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++at_;
      return fields;
    }
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string out(text_.substr(at_, end - at_));
    if (out.find('"') != std::string::npos) fail("a quote inside an unquoted field");
    at_ = end;
    return out;
  }

  std::string quoted() {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        out += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        out += '"';
        ++at_;
      } else {
        ++at_;
        if (at_ < text_.size() && text_.find_first_of(",\r\n", at_) != at_) fail("text after a closing quote");
        return out;
      }
    }
    fail("a quoted field never ends");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 0;
};

}  // namespace

CsvData parse_csv(std::string_view text, const std::string& file) {
  return CsvParser(text, file).run();
}

}  // namespace k3sim
