// Source: product-spec section 3; see targets.h.
#include "tools/regress/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/schedule/csv.h"
#include "sim/base/error.h"

namespace k3sim {
namespace {

namespace fs = std::filesystem;

// The first cell with anything in it looks like an action: digits and at once one of the letters (a damaged schedule is
// still one, and is reported); measurement tables with "141 GB" in them are not.
bool looks_like_action(const std::string& cell) {
  const std::size_t from = cell.find_first_not_of(" \t\r(\"");
  if (from == std::string::npos) return false;
  const std::size_t letter = cell.find_first_not_of("0123456789", from);
  return letter != std::string::npos && letter > from && letter - from < 6 &&
         std::string("FBIW").find(cell[letter]) != std::string::npos && cell.find(' ', from) == std::string::npos;
}

bool holds_schedule(const fs::path& file) {
  std::ifstream in(file);
  std::string line, cell;
  std::getline(in, line);
  if (line.empty() || line[0] == '#') return false;
  std::istringstream cells(line);
  while (std::getline(cells, cell, ',')) {
    const CsvSchedule one = parse_schedule_csv(cell, file.string());
    if (one.problems.empty() && !one.schedule.actions.empty() && one.schedule.stages > 0) return true;
    if (looks_like_action(cell)) return true;
  }
  return false;
}

class Finder {
 public:
  explicit Finder(fs::path root) : root_(std::move(root)) {}

  void visit(const fs::path& folder) {
    std::vector<fs::path> entries;
    for (const fs::directory_entry& e : fs::directory_iterator(folder)) entries.push_back(e.path());
    std::sort(entries.begin(), entries.end());
    const bool scenario = fs::exists(folder / "scenario.yaml");
    if (scenario || fs::exists(folder / "expected.json")) add_scenario(folder, scenario);
    for (const fs::path& e : entries) {
      if (e.filename().string().starts_with(".")) continue;
      if (fs::is_directory(e))
        visit(e);
      else if (!scenario)
        visit_file(e);
    }
  }

  void add_scenario(const fs::path& folder, bool exists) {
    const fs::path relative = fs::relative(folder, root_);
    const std::string name = relative == "." ? fs::absolute(folder).lexically_normal().filename().string() : "";
    targets.push_back({name.empty() ? relative.generic_string() : name, (folder / "scenario.yaml").string(),
                       (folder / "expected.json").string(), false, exists});
  }

  void visit_file(const fs::path& file) {
    const std::string name = file.filename().string();
    const std::string kSuffix = ".expected.json";
    if (name.ends_with(kSuffix)) {
      const fs::path input = file.parent_path() / (name.substr(0, name.size() - kSuffix.size()) + ".csv");
      if (!fs::exists(input)) add_schedule(input, false);
    } else if (name.ends_with(".csv") && (fs::exists(expected_of(file)) || holds_schedule(file))) {
      add_schedule(file, true);
    }
  }

  void add_schedule(const fs::path& file, bool exists) {
    targets.push_back(
        {fs::relative(file, root_).generic_string(), file.string(), expected_of(file).string(), true, exists});
  }

  static fs::path expected_of(fs::path csv) { return csv.replace_extension(".expected.json"); }

  std::vector<RegressTarget> targets;

 private:
  fs::path root_;
};

}  // namespace

std::vector<RegressTarget> find_regress_targets(const std::string& path) {
  std::error_code error;
  const fs::path given(path);
  if (!fs::exists(given, error)) throw ConfigError(fmt::format("no such file or folder '{}'", path));
  const fs::path folder = fs::is_directory(given) ? given : fs::absolute(given).parent_path();
  Finder finder(folder);
  if (fs::is_directory(given))
    finder.visit(given);
  else if (given.filename() == "scenario.yaml")
    finder.add_scenario(folder, true);
  else
    finder.add_schedule(given, true);
  if (finder.targets.empty()) throw ConfigError(fmt::format("'{}' holds no scenario.yaml and no schedule CSV", path));
  std::stable_sort(finder.targets.begin(), finder.targets.end(),
                   [](const RegressTarget& a, const RegressTarget& b) { return a.name < b.name; });
  return std::move(finder.targets);
}

std::string toolchain_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace k3sim
