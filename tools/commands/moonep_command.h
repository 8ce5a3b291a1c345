// k3sim moonep: plans real token counts and prints the plan, the replicas and the volumes.
// Source: product-spec sections 2 and 7; k3-facts section 3. Valid for any counts whose experts divide over the ranks.
#pragma once

#include <iosfwd>
#include <string>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

struct MoonepCommandOptions {
  std::string counts_file;
  int experts = 0;
  int ranks = 0;
  int topk = 0;    // 0: unknown; volumes of dispatch and combine are then left out
  int layer = -1;  // which of several layers in the file; -1: the only one
  int micro_batch = -1;
  int pad_rows = 128;
  double tolerance = 0.0;
  int domain_ranks = 0;
  long long width = 3584;  // expert input, K3's latent width
  long long intermediate = 3072;
  bool json = false;
};

// Returns the exit code; throws ConfigError or UsageError for wrong input. Warnings go to `err`.
int run_moonep_command(const MoonepCommandOptions& options, std::ostream& out, std::ostream& err);

void add_moonep_command(CLI::App& app, CommandContext& context);

}  // namespace k3sim
