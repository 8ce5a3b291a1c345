// k3sim fit: measurement files in, GPU profile out. Source: product-spec section 2; engine-design section 14.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace k3sim {

struct FitCommandOptions {
  std::vector<std::string> files;
  std::string out;
  std::string base;            // profile to start from; empty: by the "# gpu:" line
  std::string sustained_from;  // profile whose power limit replaces that of short-burst tables
  std::string name;            // of the new profile; empty: the base's
  std::string kineto;          // profiler trace whose kernels are the (or more) measurements
  std::string scenario;        // what the trace ran, when its shapes were not recorded
  std::vector<std::string> set;
  std::string rows;  // file for the rows of the trace
  bool json = false;
};

int run_fit_command(const FitCommandOptions& options, std::ostream& out, std::ostream& err);

}  // namespace k3sim
