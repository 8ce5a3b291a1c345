// Measurement CSV reader and resumable writer.
// Rules of the reader: '#' lines are header lines; the column line must match exactly; empty p20 and p80 fields read as
// the median (files of other tools leave them out); every other number must parse completely and be finite.
// Source: product-spec.md section 5.
#include "calibrate/harness/measurement_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"

namespace k3sim {

const char* const kMeasurementColumns = "section,kernel,pass,dtype,params,flops,bytes,median_us,p20_us,p80_us,reps";

namespace {

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == by)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// Out of line on purpose: g++ 12 warns about temporaries of this type otherwise.
[[gnu::noinline]] void report(std::vector<Problem>& problems, const Place& place, const std::string& key,
                              const std::string& what) {
  Problem problem;
  problem.place = place;
  problem.key = key;
  problem.what = what;
  problems.push_back(std::move(problem));
}

struct RowParser {
  Place place;
  std::vector<Problem>* problems;

  double number(const std::string& text, const char* column, double if_empty) {
    if (text.empty() && std::isfinite(if_empty)) return if_empty;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0)
      report(*problems, place, column, fmt::format("'{}' is not a number of at least 0", text));
    return value;
  }

  Measurement row(const std::vector<std::string>& f) {
    const double nan = std::nan("");
    Measurement m;
    m.id = {f[0], f[1], f[2], f[3], f[4], number(f[5], "flops", 0), number(f[6], "bytes", 0)};
    m.median_us = number(f[7], "median_us", nan);
    m.p20_us = number(f[8], "p20_us", m.median_us);
    m.p80_us = number(f[9], "p80_us", m.median_us);
    m.reps = static_cast<int>(number(f[10], "reps", nan));
    return m;
  }
};

}  // namespace

MeasurementTable parse_measurements(const std::string& text, const std::string& file_name) {
  MeasurementTable table;
  std::vector<Problem> problems;
  std::istringstream in(text);
  bool columns_seen = false;
  int line_number = 0;
  for (std::string line; std::getline(in, line);) {
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const Place place{file_name, line_number, 1};
    if (line[0] == '#') {
      table.header.push_back(line.substr(line.size() > 1 && line[1] == ' ' ? 2 : 1));
    } else if (!columns_seen) {
      columns_seen = true;
      if (line != kMeasurementColumns)
        report(problems, place, "", "the column line must read " + std::string(kMeasurementColumns));
    } else if (const auto fields = split(line, ','); fields.size() != 11) {
      report(problems, place, "", fmt::format("{} fields where 11 are expected", fields.size()));
    } else {
      table.rows.push_back(RowParser{place, &problems}.row(fields));
    }
  }
  if (!columns_seen) report(problems, {file_name, line_number, 1}, "", "no column line, so no measurements");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return table;
}

MeasurementTable read_measurements(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError("cannot be read", {}, {path, 0, 0});
  std::ostringstream text;
  text << in.rdbuf();
  return parse_measurements(text.str(), path);
}

MeasurementWriter::MeasurementWriter(std::string path, std::vector<std::string> header) : path_(std::move(path)) {
  const std::string partial = path_ + ".partial";
  MeasurementTable old;
  for (const std::string& candidate : {partial, path_}) {
    if (!std::filesystem::exists(candidate)) continue;
    old = read_measurements(candidate);
    if (old.header.empty() || header.empty() || old.header[0] != header[0])
      throw ConfigError(fmt::format("was measured on another machine ('{}'), this is '{}'; choose another file",
                                    old.header.empty() ? "" : old.header[0], header.empty() ? "" : header[0]),
                        "out", {candidate, 1, 1});
    break;
  }
  out_ = std::fopen(partial.c_str(), "w");
  if (out_ == nullptr) throw ConfigError("cannot be written", "out", {partial, 0, 0});
  for (const auto& line : old.header.empty() ? header : old.header) {
    notes_.insert(line);
    write_line("# " + line);
  }
  write_line(kMeasurementColumns);
  for (const auto& row : old.rows) add(row);
  resumed_ = rows();
}

MeasurementWriter::~MeasurementWriter() {
  if (out_ != nullptr) std::fclose(out_);
}

void MeasurementWriter::write_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), out_);
  std::fflush(out_);
}

void MeasurementWriter::add(const Measurement& m) {
  if (keys_.insert(m.id.key()).second) write_line(to_csv_line(m));
}

void MeasurementWriter::add_note(const std::string& comment) {
  if (notes_.insert(comment).second) write_line("# " + comment);
}

void MeasurementWriter::finish() {
  std::fclose(out_);
  out_ = nullptr;
  std::filesystem::rename(path_ + ".partial", path_);
}

}  // namespace k3sim
