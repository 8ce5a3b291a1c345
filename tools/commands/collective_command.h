// k3sim collective: one collective over a range of sizes, as nccl-tests prints it.
// Source: product-spec section 2; nccl-tests (columns and bus bandwidth).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace k3sim {

struct CollectiveCommandOptions {
  std::string operation = "all_reduce";
  std::string gpu = "h100_sxm";
  std::string node = "hgx8";
  std::string fabric;  // empty: the one that the GPU profile names
  int ranks = 8;
  int ranks_per_node = 8;
  std::string from = "1 MiB", to = "8 GiB";
  double factor = 2;
  std::string algorithm, protocol;  // forced, as NCCL_ALGO and NCCL_PROTO do; between nodes only
  bool slow_stack = false;          // latency under MPI or an eager framework
  bool flows = false;               // over the topology's links instead of the closed form
  double oversubscription = 0;      // of the fabric; needs flows
  int groups = 1;                   // equal groups side by side on the same NICs; needs flows
  bool csv = false;
  bool json = false;
};

// Returns the exit code. Throws ConfigError or UsageError.
int run_collective_command(const CollectiveCommandOptions& options, std::ostream& out);

}  // namespace k3sim
