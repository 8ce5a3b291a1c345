// Do two measurement files of the same kind of GPU agree? Rows with the same key (parameters in any order), grouped by
// section, kernel and pass: median and 90th percentile of |a/b - 1|, bias, share within 5 %.
//   Latency rows are counted apart: rows whose time does not grow although the next larger size of the same kernel has
//   at least four times the work (growth below 1.5, in either file). They show launches and host programs, not rates.
// Source: product-spec.md section 5; issue "Calibration".
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/measurement_file.h"

namespace k3sim {

struct AgreementRow {
  std::string group;  // "section,kernel,pass"
  std::string params;
  double us = 0;         // in the first file
  double other_us = 0;   // in the second
  bool latency = false;  // the time does not grow with the size
  double difference() const { return us / other_us - 1.0; }
};

struct AgreementGroup {
  std::string group;
  int rows = 0;  // compared, without latency rows
  int latency_rows = 0;
  int within_5_pct = 0;
  double median = 0, p90 = 0, bias = 0;  // shares of one; over the compared rows
};

// In the order of the first file. A key that stands twice in a file counts once, with the mean of its medians.
std::vector<AgreementRow> compare_measurements(const std::vector<Measurement>& rows,
                                               const std::vector<Measurement>& other);

std::vector<AgreementGroup> summarize_agreement(const std::vector<AgreementRow>& rows);

}  // namespace k3sim
