// Starts the calibration programs; see the header.
// Source: POSIX posix_spawn and waitpid.
#include "tools/commands/calibrate_command.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/suggest_command.h"

extern char** environ;

namespace k3sim {

namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "k3sim_calibrate";

bool is_program(const fs::path& p) {
  std::error_code ignored;
  return fs::is_regular_file(p, ignored) && access(p.c_str(), X_OK) == 0;
}

std::string executable_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

// Runs one command line with our standard streams; the exit code, or 128 + signal.
int run_line(const std::vector<std::string>& line) {
  std::vector<char*> argv;
  for (const auto& word : line) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ); error != 0)
    throw ConfigError(fmt::format("cannot start {} (error {})", line[0], error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void check_options(const CalibrateOptions& o) {
  if (o.out.empty() && !o.check) throw UsageError("calibrate needs --out FILE.csv (or --check)");
  if (o.gpus < 0) throw UsageError(fmt::format("--gpus {}: the number of GPUs must be at least 1", o.gpus));
  if (o.libraries && o.check)
    throw UsageError("--libraries times libraries and --check times nothing: use one of them");
}

}  // namespace

std::string libraries_file(const std::string& out) {
  const fs::path p(out);
  return (p.parent_path() / (p.stem().string() + "_libraries" + p.extension().string())).string();
}

std::string find_calibrate_program(const CalibrateOptions& options, const std::string& folder,
                                   const std::string& path) {
  if (!options.program.empty()) return is_program(options.program) ? options.program : std::string();
  if (const fs::path beside = fs::path(folder) / kProgram; is_program(beside)) return beside.string();
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    if (const fs::path p = fs::path(path.substr(from, to - from)) / kProgram; to > from && is_program(p))
      return p.string();
    from = to + 1;
  }
  return {};
}

std::vector<std::vector<std::string>> calibrate_command_lines(const CalibrateOptions& o, const std::string& program) {
  check_options(o);
  if (program.empty())
    throw ConfigError(o.program.empty()
                          ? "k3sim_calibrate is neither beside k3sim nor on PATH; it is built where nvcc is found "
                            "(cmake -DK3SIM_CUDA=ON)"
                          : fmt::format("{} is not a program", o.program));
  std::vector<std::string> line{program};
  if (o.gpus > 0) line.insert(line.end(), {"--gpus", std::to_string(o.gpus)});
  if (o.quick) line.push_back("--quick");
  if (o.sustained) line.push_back("--sustained");
  if (o.check) line.push_back("--check");
  if (!o.only.empty()) line.insert(line.end(), {"--only", o.only});
  if (!o.out.empty()) line.insert(line.end(), {"--out", o.out});
  std::vector<std::vector<std::string>> lines{line};
  if (o.libraries) {
    const std::string root = o.adapters.empty() ? K3SIM_SOURCE_DIR : o.adapters;
    std::vector<std::string> adapters{"/usr/bin/env",
                                      "PYTHONPATH=" + root,
                                      o.python,
                                      "-m",
                                      "calibrate.adapters",
                                      "--gpus",
                                      std::to_string(std::max(o.gpus, 1)),
                                      "--out",
                                      libraries_file(o.out)};
    if (const char* inherited = std::getenv("PYTHONPATH"); inherited != nullptr && *inherited != '\0')
      adapters[1] += std::string(":") + inherited;
    if (o.quick) adapters.push_back("--quick");
    lines.push_back(adapters);
  }
  return lines;
}

int run_calibrate(const CalibrateOptions& options) {
  check_options(options);
  const char* path = std::getenv("PATH");
  const std::string program = find_calibrate_program(options, executable_folder(), path == nullptr ? "" : path);
  int worst = 0;
  for (const auto& line : calibrate_command_lines(options, program)) worst = std::max(worst, run_line(line));
  return worst;
}

void add_calibrate_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "calibrate", "Times the kernels of the local GPUs, writes a measurement CSV",
                                  "k3sim calibrate --quick --out my_gpu.csv");
  auto options = std::make_shared<CalibrateOptions>();
  command->add_option("--out", options->out, "measurement CSV; an interrupted run is taken up again");
  command->add_option("--gpus", options->gpus, "how many GPUs of this host (default: all)");
  command->add_flag("--quick", options->quick, "fewer shapes, under two minutes");
  command->add_flag("--sustained", options->sustained, "warm each kernel for 40 ms first: the GPU at its power limit");
  command->add_flag("--check", options->check, "only compare every kernel with its double-precision reference");
  command->add_option("--only", options->only, "families, comma-separated (calibrate/README.md lists them)");
  command->add_flag("--libraries", options->libraries, "also time installed Python libraries, into FILE_libraries.csv");
  command->add_option("--program", options->program, "k3sim_calibrate, if it is not beside k3sim or on PATH");
  auto suggest = std::make_shared<std::pair<std::string, std::vector<std::string>>>();
  CLI::Option* scenario = command->add_option(
      "--suggest", suggest->first, "scenario: print what to measure next for it (needs no GPU), with --set and --json");
  add_set_option(*command, suggest->second);
  add_json_flag(*command, context);
  command->add_option("--python", options->python, "Python that has the libraries")->capture_default_str();
  command->callback([options, suggest, scenario, &context] {
    if (scenario->count() == 0 && (context.json || !suggest->second.empty()))
      throw UsageError("--set and --json belong to --suggest SCENARIO");
    if (scenario->count() > 0 && !options->out.empty()) throw UsageError("--suggest writes no file: leave --out away");
    context.exit_code = scenario->count() > 0 ? suggest_measurements(suggest->first, suggest->second, context)
                                              : run_calibrate(*options);
  });
}

}  // namespace k3sim
