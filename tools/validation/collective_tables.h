// How one published table is read: GPU, transport, group and operation from its texts. Internal to the validation.
// Source: validation/README.md (conventions of kernels.yaml).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/comm/collectives.h"
#include "tools/validation/collective_validation.h"

namespace k3sim {

struct KernelTable {
  std::string id, category, op, hardware;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  int column(const std::string& name) const;                         // -1 when absent
  std::string cell(std::size_t row, const std::string& name) const;  // "" when absent
};

// Tables of the named categories only.
std::vector<KernelTable> load_kernel_tables(const std::string& path, const std::vector<std::string>& categories = {
                                                                         "collective", "p2p", "moe_comm"});

// "H100-SXM5-80GB p5 (...)" -> "h100_sxm"; empty when no profile fits.
std::string profile_of_hardware(const std::string& hardware);
// Fabric profile that differs from the GPU profile's own, or empty.
std::string fabric_of_hardware(const std::string& hardware, const std::string& gpu);

struct GroupSize {
  int ranks = 0, nodes = 1;
};
// From a column `gpus`, the id ("-1n8-", "-32n256-", "-2n2-") or the op text ("4 nodes x 8", "8 GPUs").
std::optional<GroupSize> group_of_row(const KernelTable& table, std::size_t row);
std::optional<Collective> collective_of(const std::string& text);
// Bytes from `bytes`, `size_label` ("33M" = 32 MiB) or "N GiB" in the op text; -1 when there are none.
std::int64_t bytes_of_row(const KernelTable& table, std::size_t row);

// Loads each profile once.
class ProfileCache {
 public:
  const CommModel& model(const std::string& gpu, const std::string& fabric);

 private:
  std::map<std::pair<std::string, std::string>, CommModel> models_;
};

// Tables of category moe_comm.
void validate_exchange_table(const KernelTable& table, ProfileCache& profiles, std::vector<CollectiveRow>& out);
CollectiveRow start_row(const KernelTable& table, std::size_t row);
void finish_row(CollectiveRow& row, double measured_us, double predicted_us);
void skip_row(CollectiveRow& row, std::string reason);

}  // namespace k3sim
