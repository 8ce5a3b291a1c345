// Files appear complete or not at all: each is written under a temporary name beside its target and renamed. A folder
// of results is staged as a whole, so that an error or an interrupt half-way leaves the older results as they were.
// Source: product-spec section 2 (errors write nothing; an interrupted run leaves no half file); rename(2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace k3sim {

// Writes one file through a temporary name. Throws ConfigError when the place cannot be written.
void write_file_atomically(const std::string& path, std::string_view content);

class OutputFolder {
 public:
  // Creates the folder when it is missing. Throws ConfigError when that is impossible.
  explicit OutputFolder(std::string folder);
  ~OutputFolder();  // removes what was staged and not committed
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  void add(const std::string& name, std::string_view content);
  // A temporary path for writers that stream; it becomes folder/name at commit.
  std::string stage(const std::string& name);
  void commit();  // renames everything; nothing is visible before
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
  std::vector<std::string> staged_;  // names
  std::string temporary(const std::string& name) const;
};

}  // namespace k3sim
