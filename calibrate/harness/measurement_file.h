// Reading a measurement CSV, and writing one row by row so that an interrupted calibration keeps what it has.
//   While running, rows go to FILE.partial (flushed per row); finish() renames it to FILE. A new run over the same FILE
//   first takes over the rows of FILE.partial, or of FILE, and done() tells which keys need not be measured again.
//   Rows are taken over only when the "# gpu:" line is the same, so that two machines never mix in one file.
// Source: product-spec.md sections 2 (temporary name, then rename) and 5 (format).
#pragma once

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "calibrate/harness/measurement.h"

namespace k3sim {

extern const char* const kMeasurementColumns;

struct MeasurementTable {
  std::vector<std::string> header;  // the '#' lines without the leading "# "
  std::vector<Measurement> rows;
};

// Parses a whole file. All malformed lines are reported at once. Throws ConfigError.
MeasurementTable parse_measurements(const std::string& text, const std::string& file_name);
MeasurementTable read_measurements(const std::string& path);

class MeasurementWriter {
 public:
  // Opens PATH.partial. `header` is written first unless rows are taken over; header[0] must be the gpu line.
  MeasurementWriter(std::string path, std::vector<std::string> header);
  ~MeasurementWriter();
  MeasurementWriter(const MeasurementWriter&) = delete;
  MeasurementWriter& operator=(const MeasurementWriter&) = delete;

  bool done(const KernelId& id) const { return keys_.count(id.key()) != 0; }
  int resumed_rows() const { return resumed_; }
  int rows() const { return static_cast<int>(keys_.size()); }
  void add(const Measurement& m);             // ignored when the key is present
  void add_note(const std::string& comment);  // a '#' line, for example why something was skipped
  void finish();                              // closes and renames to the final name

 private:
  void write_line(const std::string& line);
  std::string path_;
  std::set<std::string> keys_;
  std::set<std::string> notes_;
  std::FILE* out_ = nullptr;
  int resumed_ = 0;
};

}  // namespace k3sim
