// `k3sim calibrate`: times kernels of the local GPUs and writes a measurement CSV.
//   The CUDA program k3sim_calibrate runs as a subprocess (a crash of the GPU driver never takes k3sim down), then, if
//   asked for, the Python adapters of the installed libraries, into FILE with "_libraries" before the extension.
// Source: product-spec.md sections 2 and 5.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace k3sim {

struct CommandContext;

struct CalibrateOptions {
  std::string out = {};  // CSV to write; may be empty with check
  int gpus = 0;          // 0: all
  bool sustained = false;
  bool quick = false;         // under two minutes
  bool check = false;         // only compare with the double-precision references
  std::string only = {};      // families, comma-separated; empty: all
  bool libraries = false;     // also run the Python adapters
  std::string program = {};   // k3sim_calibrate; empty: beside this executable, then PATH
  std::string adapters = {};  // folder that holds the Python package `calibrate`; empty: the source tree
  std::string python = "python3";
};

// The command lines that would run, in order; the first is the CUDA program's. Throws UsageError on wrong options and
// ConfigError when the program is not built.
std::vector<std::vector<std::string>> calibrate_command_lines(const CalibrateOptions& options,
                                                              const std::string& program);

// Looks for the program: options.program, then the folder of this executable, then PATH. Empty if nowhere.
std::string find_calibrate_program(const CalibrateOptions& options, const std::string& executable_folder,
                                   const std::string& path);

// Exit code: 0 fine, 1 a kernel was wrong, 2 wrong usage or not built, 3 no usable GPU.
int run_calibrate(const CalibrateOptions& options);

void add_calibrate_command(CLI::App& app, CommandContext& context);

// Where the adapters' rows go: "a/b.csv" -> "a/b_libraries.csv".
std::string libraries_file(const std::string& out);

}  // namespace k3sim
