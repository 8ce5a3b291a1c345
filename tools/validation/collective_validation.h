// Collectives, messages and expert exchanges: predicted against published and measured tables.
// A table of kernels.yaml (categories collective, p2p, moe_comm) is read as it stands: the GPU and the transport from
// `hardware`, the group from the columns, the id ("-2n16-") or the text of `op`; bus bandwidths become times. A row
// that cannot be interpreted is reported as skipped with the reason. Tables that a profile's curves were read from are
// marked, so that the fit and the prediction are never mixed up.
// Source: product spec section 6; nccl-tests conventions (hardware notes 3.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace k3sim {

struct CollectiveRow {
  std::string id;  // table id and row number
  std::string table;
  std::string family;  // one of collective_families()
  std::string kind;    // all_reduce, dispatch, ...
  std::string gpu;
  std::int64_t bytes = 0;
  int ranks = 0, nodes = 0;
  bool predicted_row = false;
  bool calibration = false;  // the profile's curve was read from this table
  std::string reason;        // why it was skipped
  std::string metric;        // "time_us"
  double measured = 0, predicted = 0, error_pct = 0;
};

struct CollectiveSummary {
  std::string label;
  std::size_t rows = 0, independent = 0;  // independent: not used for calibration
  double median_abs_error_pct = 0, p90_abs_error_pct = 0, bias_pct = 0;
  double independent_median_pct = 0;
};

// Throws ConfigError when the file is not of the form described in the product spec.
std::vector<CollectiveRow> validate_collective_tables(const std::string& kernels_yaml);
// The nccl rows of a measurement CSV.
std::vector<CollectiveRow> validate_nccl_measurements(const std::string& csv);

// In this order: "8 GPUs, 1 MiB and more", "2 GPUs, 1 MiB and more", "one node, other", "all_reduce between nodes",
// "other between nodes", "expert exchange", "point to point", "below 1 MiB", "all".
std::vector<CollectiveSummary> summarize(const std::vector<CollectiveRow>& rows);
// A text table of the summaries, and one CSV line per row.
std::string to_text(const std::vector<CollectiveSummary>& summaries);
std::string to_csv(const std::vector<CollectiveRow>& rows);

}  // namespace k3sim
