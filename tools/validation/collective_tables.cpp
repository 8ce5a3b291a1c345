// Reading of published tables; see the header.
// Source: validation/README.md (sizes are nccl-tests sizes; labels are rounded powers of two).
#include "tools/validation/collective_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "models/config/data_files.h"
#include "models/config/yaml_reader.h"

namespace k3sim {

int KernelTable::column(const std::string& name) const {
  const auto it = std::find(columns.begin(), columns.end(), name);
  return it == columns.end() ? -1 : static_cast<int>(it - columns.begin());
}

std::string KernelTable::cell(std::size_t row, const std::string& name) const {
  const int c = column(name);
  if (c < 0 || static_cast<std::size_t>(c) >= rows[row].size()) return {};
  return rows[row][static_cast<std::size_t>(c)];
}

std::vector<KernelTable> load_kernel_tables(const std::string& path, const std::vector<std::string>& categories) {
  const YamlDocument doc = YamlDocument::load(path);
  std::vector<KernelTable> tables;
  for (const YamlNode& node : doc.root().items()) {
    node.accept_all();
    KernelTable t;
    node.require("id", t.id);
    node.require("category", t.category);
    if (std::find(categories.begin(), categories.end(), t.category) == categories.end()) continue;
    node.require("op", t.op);
    node.require("hardware", t.hardware);
    node.require("columns", t.columns);
    for (const YamlNode& row : node.child("rows").items()) {
      std::vector<std::string> cells;
      for (const YamlNode& cell : row.items()) cells.push_back(cell.text());
      t.rows.push_back(std::move(cells));
    }
    tables.push_back(std::move(t));
  }
  doc.throw_if_problems();
  return tables;
}

std::string profile_of_hardware(const std::string& hardware) {
  const std::pair<const char*, const char*> known[] = {{"GB200", "gb200"},   {"B200", "b200_sxm"}, {"H100", "h100_sxm"},
                                                       {"H800", "h800_sxm"}, {"H200", "h200_sxm"}, {"H20", "h20"},
                                                       {"A100", "a100_sxm"}, {"SM90", "h100_sxm"}};
  for (const auto& [word, profile] : known) {
    if (hardware.find(word) != std::string::npos) return profile;
  }
  return {};
}

std::string fabric_of_hardware(const std::string& hardware, const std::string& gpu) {
  if (hardware.find("EFA") == std::string::npos) return {};
  return gpu == "a100_sxm" ? "efa_50g" : "efa_400g";
}

std::optional<Collective> collective_of(const std::string& text) {
  const std::pair<const char*, Collective> known[] = {
      {"all_reduce", Collective::all_reduce},         {"all_gather", Collective::all_gather},
      {"reduce_scatter", Collective::reduce_scatter}, {"alltoall", Collective::all_to_all},
      {"all_to_all", Collective::all_to_all},         {"sendrecv", Collective::send_recv}};
  for (const auto& [word, kind] : known) {
    if (text.find(word) != std::string::npos) return kind;
  }
  return std::nullopt;
}

std::optional<GroupSize> group_of_row(const KernelTable& table, std::size_t row) {
  std::smatch m;
  const int scope = std::regex_search(table.op, m, std::regex("([0-9]+) nodes x ([0-9]+)")) ? std::stoi(m[1]) : 0;
  const std::string gpus = table.cell(row, "gpus");
  if (!gpus.empty()) {
    const int n = std::atoi(gpus.c_str());
    const bool one_node = table.op.find("node") != std::string::npos && table.op.find("per node") == std::string::npos;
    return GroupSize{n, one_node ? 1 : (n + 7) / 8};
  }
  if (std::regex_search(table.id, m, std::regex("-([0-9]+)n([0-9]+)-")))
    return GroupSize{std::stoi(m[2]), std::stoi(m[1])};
  if (scope > 0) return GroupSize{scope * 8, scope};
  if (std::regex_search(table.op, m, std::regex("([0-9]+) GPUs"))) return GroupSize{std::stoi(m[1]), 1};
  return std::nullopt;
}

std::int64_t bytes_of_row(const KernelTable& table, std::size_t row) {
  if (const std::string b = table.cell(row, "bytes"); !b.empty()) return std::atoll(b.c_str());
  if (const std::string label = table.cell(row, "size_label"); !label.empty()) {
    const double unit = label.back() == 'K' ? 10 : label.back() == 'M' ? 20 : 30;
    return std::int64_t{1} << std::lround(std::log2(std::atof(label.c_str())) + unit);
  }
  std::smatch m;
  if (std::regex_search(table.op, m, std::regex("([0-9]+) GiB"))) return std::int64_t{std::stoi(m[1])} << 30;
  return -1;
}

const CommModel& ProfileCache::model(const std::string& gpu, const std::string& fabric) {
  const auto key = std::pair{gpu, fabric};
  if (const auto it = models_.find(key); it != models_.end()) return it->second;
  CommModel m = load_comm_model(data_path("hardware_profiles/collectives/" + gpu + ".yaml"));
  if (!fabric.empty()) m.scale_out = load_scale_out(data_path("hardware_profiles/fabric/" + fabric + ".yaml"));
  return models_.emplace(key, std::move(m)).first->second;
}

CollectiveRow start_row(const KernelTable& table, std::size_t row) {
  CollectiveRow r;
  r.id = table.id + "/" + std::to_string(row);
  r.table = table.id;
  r.gpu = profile_of_hardware(table.hardware);
  r.metric = "time_us";
  return r;
}

void finish_row(CollectiveRow& row, double measured_us, double predicted_us) {
  row.predicted_row = true;
  row.measured = measured_us;
  row.predicted = predicted_us;
  row.error_pct = 100 * (predicted_us / measured_us - 1);
}

void skip_row(CollectiveRow& row, std::string reason) {
  row.reason = std::move(reason);
}

}  // namespace k3sim
