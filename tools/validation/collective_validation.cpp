// Predictions for collective and point-to-point tables, and the summaries; see the header.
// Source: nccl-tests (bus bandwidth = bytes x factor / time).
#include "tools/validation/collective_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "models/config/data_files.h"
#include "sim/base/error.h"
#include "tools/validation/collective_tables.h"

namespace k3sim {
namespace {

constexpr std::int64_t kMib = 1 << 20;

std::string family_of(Collective kind, const CollectiveRow& r) {
  if (kind == Collective::send_recv) return "point to point";
  if (r.bytes < kMib) return "below 1 MiB";
  if (r.nodes > 1) return kind == Collective::all_reduce ? "all_reduce between nodes" : "other between nodes";
  if (r.ranks == 8) return "8 GPUs, 1 MiB and more";
  return r.ranks == 2 ? "2 GPUs, 1 MiB and more" : "one node, other";
}

// Time of a row from whichever column it has; 0 when it has none.
double measured_us(const KernelTable& t, std::size_t row, const CollectiveRow& r, Collective kind,
                   const char* bus_column) {
  for (const char* column : {"time_us", "time_us_out_of_place"}) {
    if (const std::string v = t.cell(row, column); !v.empty()) return std::atof(v.c_str());
  }
  const double bus = std::atof(t.cell(row, bus_column).c_str());
  return bus > 0 ? static_cast<double>(r.bytes) * bus_factor(kind, r.ranks) / (bus * 1e3) : 0;
}

std::optional<TuningChoice> forced_algorithm(const KernelTable& t, std::size_t row) {
  const std::string text = t.cell(row, "algo");
  const bool whole_table = t.op.find("NVLSTree algorithm") != std::string::npos;
  if (whole_table || text.find("nvlstree (forced)") != std::string::npos) {
    return TuningChoice{Algorithm::nvls_tree, Protocol::simple};
  }
  if (text.find("ring (forced)") != std::string::npos) return TuningChoice{Algorithm::ring, Protocol::simple};
  return std::nullopt;
}

void predict(const KernelTable& t, std::size_t row, CollectiveRow& r, Collective kind, ProfileCache& profiles,
             const char* bus_column) {
  r.kind = to_string(kind);
  r.family = family_of(kind, r);
  const double measured = measured_us(t, row, r, kind, bus_column);
  if (measured <= 0 || r.bytes <= 0) return skip_row(r, "neither time nor bus bandwidth with a size");
  const CommModel& m = profiles.model(r.gpu, fabric_of_hardware(t.hardware, r.gpu));
  r.calibration = std::find(m.calibrated_on.begin(), m.calibrated_on.end(), t.id) != m.calibrated_on.end();
  CommGroup g = comm_group(r.ranks, (r.ranks + r.nodes - 1) / r.nodes);
  const auto forced = r.nodes > 1 ? forced_algorithm(t, row) : std::nullopt;
  finish_row(r, measured, collective_time(m, kind, Bytes(r.bytes), g, forced).time.microseconds());
}

void collective_table(const KernelTable& t, ProfileCache& profiles, std::vector<CollectiveRow>& out) {
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    CollectiveRow r = start_row(t, i);
    if (const std::string gpu = t.cell(i, "gpu"); !gpu.empty()) r.gpu = profile_of_hardware(gpu);
    const std::string op = t.cell(i, "op");
    const auto kind = collective_of(op.empty() ? t.op : op);
    const auto group = group_of_row(t, i);
    r.bytes = bytes_of_row(t, i);
    // Vendor figures are rates for "large" messages: taken at 16 GiB.
    if (r.bytes < 0 && t.id == "nccl-vendor-slides") r.bytes = std::int64_t{16} << 30;
    r.family = "skipped";
    if (t.column("bus_1node") >= 0 && kind) {  // one system measured at two scopes
      CollectiveRow four = r;
      r.ranks = 8, r.nodes = 1, four.ranks = 32, four.nodes = 4, four.id += "/4n";
      predict(t, i, r, *kind, profiles, "bus_1node");
      predict(t, i, four, *kind, profiles, "bus_4nodes");
      out.push_back(four);
    } else if (r.gpu.empty() || !kind || !group) {
      skip_row(r, r.gpu.empty() ? "no profile of this GPU" : !kind ? "unknown operation" : "group size unknown");
    } else {
      r.ranks = group->ranks, r.nodes = group->nodes;
      predict(t, i, r, *kind, profiles, "bus_gb_per_s");
    }
    out.push_back(std::move(r));
  }
}

// Rates of lone copies: compared as the time of 1 GiB.
void message_table(const KernelTable& t, ProfileCache& profiles, std::vector<CollectiveRow>& out) {
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    CollectiveRow r = start_row(t, i);
    r.gpu = profile_of_hardware(t.cell(i, "gpu"));
    r.family = "point to point";
    r.kind = "send_recv";
    const double rate = std::atof(t.cell(i, "gb_per_s").c_str());
    if (r.gpu.empty() || rate <= 0) {
      skip_row(r, "a latency of the fabric, not a rate of a GPU");
    } else if (t.cell(i, "test").find("bidirectional total") != std::string::npos) {
      skip_row(r, "sum of two directions");
    } else {
      r.bytes = std::int64_t{1} << 30, r.ranks = 2, r.nodes = 1;
      const CommModel& m = profiles.model(r.gpu, "");
      const Time time = collective_time(m, Collective::send_recv, Bytes(r.bytes), comm_group(2, 8)).time;
      finish_row(r, static_cast<double>(r.bytes) / (rate * 1e3), time.microseconds());
    }
    out.push_back(std::move(r));
  }
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 == 1 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

double p90(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(v.size()))) - 1)];
}

CollectiveSummary summary_of(const std::string& label, const std::vector<CollectiveRow>& rows) {
  CollectiveSummary s;
  s.label = label;
  std::vector<double> all, own, with_sign;
  for (const CollectiveRow& r : rows) {
    if (!r.predicted_row || (label != "all" && r.family != label)) continue;
    all.push_back(std::abs(r.error_pct));
    with_sign.push_back(r.error_pct);
    if (!r.calibration) own.push_back(std::abs(r.error_pct));
  }
  s.rows = all.size();
  s.independent = own.size();
  s.median_abs_error_pct = median(all);
  s.p90_abs_error_pct = p90(all);
  s.bias_pct = median(with_sign);
  s.independent_median_pct = median(own);
  return s;
}

std::vector<std::string> split(const std::string& line, char at) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, at);) out.push_back(cell);
  return out;
}

void measured_line(const std::string& line, int number, const CommModel& m, std::vector<CollectiveRow>& out) {
  const auto cells = split(line, ',');
  if (cells.size() < 8 || cells[0] != "nccl") return;
  CollectiveRow r;
  r.id = fmt::format("nccl/{}", number);
  r.table = "measured nccl rows";
  r.gpu = m.name;
  r.metric = "time_us";
  r.ranks = 2, r.nodes = 1;
  r.bytes = std::atoll(cells[6].c_str());
  r.kind = cells[1];
  r.family = "skipped";
  const auto kind = cells[1] == "send_unidir" ? std::optional(Collective::send_recv) : collective_of(cells[1]);
  if (!kind) {
    skip_row(r, "not a collective");
  } else {
    r.family = family_of(*kind, r);
    Time t = collective_time(m, *kind, Bytes(r.bytes), comm_group(2, 8)).time;
    if (*kind == Collective::send_recv) t += m.eager_issue;  // these rows were issued eagerly
    finish_row(r, std::atof(cells[7].c_str()), t.microseconds());
  }
  out.push_back(std::move(r));
}

}  // namespace

std::vector<CollectiveRow> validate_collective_tables(const std::string& kernels_yaml) {
  std::vector<CollectiveRow> out;
  ProfileCache profiles;
  for (const KernelTable& t : load_kernel_tables(kernels_yaml)) {
    if (t.category == "collective") collective_table(t, profiles, out);
    if (t.category == "p2p") message_table(t, profiles, out);
    if (t.category == "moe_comm") validate_exchange_table(t, profiles, out);
  }
  return out;
}

std::vector<CollectiveRow> validate_nccl_measurements(const std::string& csv) {
  std::ifstream in(csv);
  if (!in) throw ConfigError("cannot read the file", {}, Place{csv, 0, 0});
  std::string line, gpu = "h200_sxm";
  std::vector<CollectiveRow> out;
  ProfileCache profiles;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.rfind("# gpu:", 0) == 0) {
      const std::string named = profile_of_hardware(line);
      if (!named.empty()) gpu = named;
    }
    measured_line(line, number, profiles.model(gpu, ""), out);
  }
  return out;
}

std::vector<CollectiveSummary> summarize(const std::vector<CollectiveRow>& rows) {
  std::vector<CollectiveSummary> out;
  for (const char* label :
       {"8 GPUs, 1 MiB and more", "2 GPUs, 1 MiB and more", "one node, other", "all_reduce between nodes",
        "other between nodes", "expert exchange", "point to point", "below 1 MiB", "all"}) {
    out.push_back(summary_of(label, rows));
  }
  return out;
}

std::string to_text(const std::vector<CollectiveSummary>& summaries) {
  std::string out = fmt::format("{:<28}{:>6}{:>14}{:>10}{:>10}{:>10}{:>20}\n", "family", "rows", "independent",
                                "median %", "p90 %", "bias %", "independent median %");
  for (const CollectiveSummary& s : summaries) {
    out += fmt::format("{:<28}{:>6}{:>14}{:>10.1f}{:>10.1f}{:>10.1f}{:>20.1f}\n", s.label, s.rows, s.independent,
                       s.median_abs_error_pct, s.p90_abs_error_pct, s.bias_pct, s.independent_median_pct);
  }
  return out;
}

std::string to_csv(const std::vector<CollectiveRow>& rows) {
  std::string out = "id,family,kind,gpu,ranks,nodes,bytes,calibration,metric,measured,predicted,error_pct,reason\n";
  for (const CollectiveRow& r : rows) {
    out += fmt::format("{},\"{}\",{},{},{},{},{},{},{},{:.3f},{:.3f},{:.2f},\"{}\"\n", r.id, r.family, r.kind, r.gpu,
                       r.ranks, r.nodes, r.bytes, r.calibration ? 1 : 0, r.metric, r.measured, r.predicted, r.error_pct,
                       r.reason);
  }
  return out;
}

}  // namespace k3sim
