// Loads Chakra execution traces PREFIX.RANK.et (or one file) with the process groups that belong to them.
// Groups come from PREFIX.json or --groups (ASTRA-sim's comm-group file), else from the traces' process-group metadata
// nodes (PyTorch), else every collective spans all ranks. Files may be gzip.
// Source: sim/trace/chakra.h; astra-sim/astra-sim astra-sim/workload/Workload.cc (file names, groups).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/trace/chakra.h"

namespace k3sim {

struct ChakraFiles {
  std::vector<int> ranks;  // ascending; of every trace
  std::vector<ChakraTrace> traces;
  std::map<std::string, std::vector<int>> groups;  // by pg_name
  int world = 0;                                   // ranks that exist, with a file or not
};

// `prefix`: PREFIX of PREFIX.RANK.et, or the name of one file. Throws ConfigError.
ChakraFiles load_chakra(const std::string& prefix, const std::string& groups_file);
ChakraTrace load_chakra_file(const std::string& file);

}  // namespace k3sim
