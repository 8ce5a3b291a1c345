#include "tools/sweep/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/fingerprint.h"

namespace k3sim {

namespace {

namespace fs = std::filesystem;

std::string checksum(std::int64_t index, const std::string& row) {
  Fingerprint f;
  f.add(static_cast<std::uint64_t>(index));
  f.add(std::string_view(row));
  return fmt::format("{:016x}", f.value());
}

std::string first_line(const std::string& digest) {
  return "# k3sim sweep journal " + digest;
}

bool ends_open(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() == std::streampos(0)) return false;
  in.seekg(-1, std::ios::end);
  return in.get() != '\n';
}

bool parse_line(const std::string& line, std::int64_t& index, std::string& row) {
  const std::size_t first = line.find('|'), last = line.rfind('|');
  if (first == std::string::npos || last <= first) return false;
  const auto [end, error] = std::from_chars(line.data(), line.data() + first, index);
  if (error != std::errc{} || end != line.data() + first) return false;
  row = line.substr(first + 1, last - first - 1) + "\r\n";
  return line.substr(last + 1) == checksum(index, row);
}

std::vector<std::string> journals(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, error))
    if (e.path().filename().string().starts_with("journal-")) out.push_back(e.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Journal::Journal(const std::string& path, const std::string& digest, bool fresh) : path_(path) {
  Rows ignored;
  std::error_code error;
  const bool known = !fresh && fs::exists(path, error) && read_journal(path, digest, ignored);
  const bool torn = known && ends_open(path);
  file_ = std::fopen(path.c_str(), known ? "ab" : "wb");
  if (!file_) throw ConfigError("cannot be written", {}, {path, 0, 0});
  if (torn) std::fputc('\n', file_);
  if (!known) std::fputs((first_line(digest) + "\n").c_str(), file_);
  std::fflush(file_);
}

Journal::~Journal() {
  if (file_) std::fclose(file_);
}

void Journal::add(std::int64_t index, const std::string& row) {
  const std::string line = fmt::format("{}|{}|{}\n", index, row.substr(0, row.size() - 2), checksum(index, row));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::fputs(line.c_str(), file_) < 0 || std::fflush(file_) != 0)
    throw ConfigError("cannot be written", {}, {path_, 0, 0});
}

bool read_journal(const std::string& path, const std::string& digest, Rows& rows) {
  std::ifstream in(path, std::ios::binary);
  std::string line, row;
  if (!std::getline(in, line) || line != first_line(digest)) return false;
  std::int64_t index = 0;
  while (std::getline(in, line))
    if (parse_line(line, index, row)) rows[index] = row;
  return true;
}

Rows read_journals(const std::string& folder, const std::string& digest) {
  Rows rows;
  for (const std::string& path : journals(folder)) read_journal(path, digest, rows);
  return rows;
}

void remove_journals(const std::string& folder) {
  std::error_code error;
  for (const std::string& path : journals(folder)) fs::remove(path, error);
}

}  // namespace k3sim
