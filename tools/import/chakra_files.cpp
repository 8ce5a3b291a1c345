// Source: see chakra_files.h.
#include "tools/import/chakra_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.h"
#include "sim/trace/gzip.h"
#include "sim/trace/wire.h"

namespace k3sim {
namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError("cannot read the file", {}, Place{file, 0, 0});
  std::ostringstream text;
  text << in.rdbuf();
  std::string bytes = text.str();
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b') return bytes;
  try {
    return gunzip(bytes);
  } catch (const std::runtime_error& e) {
    throw ConfigError(e.what(), {}, Place{file, 0, 0});
  }
}

// The number between the last two dots of NAME.RANK.et; -1 for other names.
int rank_of(const std::string& name, const std::string& stem) {
  if (name.rfind(stem + ".", 0) != 0 || name.size() < stem.size() + 5 || name.substr(name.size() - 3) != ".et")
    return -1;
  const std::string digits = name.substr(stem.size() + 1, name.size() - stem.size() - 4);
  const bool whole =
      !digits.empty() && digits.size() < 8 && digits.find_first_not_of("0123456789") == std::string::npos;
  return whole ? std::stoi(digits) : -1;
}

std::map<int, std::string> files_of(const std::string& prefix) {
  std::map<int, std::string> files;
  const fs::path given(prefix);
  if (fs::is_regular_file(given)) return {{0, prefix}};
  const fs::path folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, error))
    if (const int rank = rank_of(e.path().filename().string(), given.filename().string()); rank >= 0)
      files[rank] = e.path().string();
  if (files.empty()) throw ConfigError(fmt::format("no file {}.0.et", prefix));
  return files;
}

// A PyTorch trace holds its groups as the text of a metadata node's input, a JSON list inside a list.
void take_process_groups(const ChakraNode& n, std::map<std::string, std::vector<int>>& groups) {
  if (n.type != ChakraType::metadata || n.values.find("pg_name") == std::string::npos) return;
  const std::size_t from = n.values.find("[{"), to = n.values.rfind("}]");
  if (from == std::string::npos || to == std::string::npos || to < from) return;
  std::string text = n.values.substr(from, to + 2 - from);
  text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_array()) return;
  for (const nlohmann::json& g : j)
    if (g.is_object() && g.contains("pg_name") && g.contains("ranks"))
      groups[g["pg_name"].is_string() ? g["pg_name"].get<std::string>() : g["pg_name"].dump()] =
          g["ranks"].get<std::vector<int>>();
}

void read_groups(const std::string& file, std::map<std::string, std::vector<int>>& groups) {
  const nlohmann::json j = nlohmann::json::parse(read_all(file), nullptr, false);
  if (!j.is_object()) throw ConfigError("no JSON object of process groups", {}, Place{file, 0, 0});
  for (const auto& [name, ranks] : j.items()) {
    if (!ranks.is_array() ||
        !std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.is_number_integer(); }))
      throw ConfigError(fmt::format("group '{}' is no list of ranks", name), {}, Place{file, 0, 0});
    groups[name] = ranks.get<std::vector<int>>();
  }
}

}  // namespace

ChakraTrace load_chakra_file(const std::string& file) {
  try {
    return read_chakra(read_all(file));
  } catch (const WireError& e) {
    throw ConfigError(fmt::format("no Chakra execution trace: {}", e.what()), {}, Place{file, 0, 0});
  }
}

ChakraFiles load_chakra(const std::string& prefix, const std::string& groups_file) {
  ChakraFiles out;
  for (const auto& [rank, file] : files_of(prefix)) {
    out.ranks.push_back(rank);
    out.traces.push_back(load_chakra_file(file));
    for (const ChakraNode& n : out.traces.back().nodes) take_process_groups(n, out.groups);
  }
  out.world = out.ranks.back() + 1;
  if (!groups_file.empty())
    read_groups(groups_file, out.groups);
  else if (fs::is_regular_file(prefix + ".json"))
    read_groups(prefix + ".json", out.groups);
  for (const auto& [name, ranks] : out.groups)
    for (int r : ranks) out.world = std::max(out.world, r + 1);
  return out;
}

}  // namespace k3sim
