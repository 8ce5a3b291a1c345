// Source: product-spec section 2; see data_files.h.
#include "models/config/data_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace k3sim {

namespace fs = std::filesystem;

namespace {
bool holds_data(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "models" / "zoo", error) && fs::is_directory(folder / "hardware_profiles", error);
}
}  // namespace

std::string data_root() {
  if (const char* home = std::getenv("K3SIM_HOME"); home && *home) return home;
  std::error_code error;
  for (fs::path at = fs::read_symlink("/proc/self/exe", error).parent_path(); at.has_relative_path();
       at = at.parent_path())
    if (holds_data(at)) return at.string();
  return K3SIM_SOURCE_DIR;
}

std::string data_path(const std::string& relative) {
  return data_root() + "/" + relative;
}

std::vector<std::string> known_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_path(folder), error))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace k3sim
