// Source: product-spec section 2; see output_files.h.
#include "tools/commands/output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace k3sim {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw ConfigError(fmt::format("cannot be written: {}", why), {}, Place{path, 0, 0});
}

void write_plain(const std::string& path, std::string_view content, const std::string& shown) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (out.fail()) {
    const std::string why = errno ? std::strerror(errno) : "unknown reason";
    std::error_code ignored;
    fs::remove(path, ignored);
    fail(shown, why);
  }
}

void rename_or_fail(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(from, ignored);
  fail(to, error.message());
}

std::string temporary_name(const fs::path& path) {
  const std::string hidden = fmt::format(".{}.part-{}", path.filename().string(), getpid());
  return (path.parent_path() / hidden).string();
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::string partial = temporary_name(path);
  write_plain(partial, content, path);
  rename_or_fail(partial, path);
}

OutputFolder::OutputFolder(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_)) fail(folder_, error ? error.message() : "is not a folder");
  if (access(folder_.c_str(), W_OK) != 0) fail(folder_, std::strerror(errno));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  for (const std::string& name : staged_) fs::remove(temporary(name), ignored);
}

std::string OutputFolder::temporary(const std::string& name) const {
  return temporary_name(path(name));
}

void OutputFolder::add(const std::string& name, std::string_view content) {
  write_plain(stage(name), content, path(name));
}

std::string OutputFolder::stage(const std::string& name) {
  staged_.push_back(name);
  return temporary(name);
}

void OutputFolder::commit() {
  for (const std::string& name : staged_) rename_or_fail(temporary(name), path(name));
  staged_.clear();
}

}  // namespace k3sim
