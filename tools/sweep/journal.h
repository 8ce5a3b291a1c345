// Finished rows on disk before the run is over. Every line is `index|row|checksum`: a line that was cut off by a crash
// has a wrong checksum and is ignored, so that nothing but the row in flight is lost and --resume evaluates only that.
// The first line names the space and options; rows of another space are never taken.
// Source: engine-design section 9 (append finished rows, merge by configuration).
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace k3sim {

class Journal {
 public:
  // Opens for appending; `fresh` starts over. Throws ConfigError when the place cannot be written.
  Journal(const std::string& path, const std::string& digest, bool fresh);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  void add(std::int64_t index, const std::string& row);  // thread-safe; on disk when it returns

 private:
  std::FILE* file_ = nullptr;
  std::string path_;
  std::mutex mutex_;
};

using Rows = std::map<std::int64_t, std::string>;  // by index
// Adds the sound rows of one journal; false when it belongs to another space.
bool read_journal(const std::string& path, const std::string& digest, Rows& rows);
// Of all journals in a folder (files named journal-*.csv).
Rows read_journals(const std::string& folder, const std::string& digest);
void remove_journals(const std::string& folder);

}  // namespace k3sim
