// k3sim_calibrate: times the kernels of this machine and writes the measurement CSV. Started by `k3sim calibrate`, also
// usable alone.   k3sim_calibrate [--gpus N] [--quick] [--sustained] [--check] [--only a,b] [--seed N] --out FILE.csv
// A family whose results are wrong reports nothing; the others go on. Exit codes: 0 all fine; 1 a check failed;
// 2 wrong usage; 3 no usable GPU.
// Source: product-spec.md sections 2 and 5.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "calibrate/harness/progress.h"
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/families.h"
#include "calibrate/kernels/machine.h"

namespace k3sim {

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"launch", {}, run_launch},
      {"elementwise", {.memory_gib = 8}, run_elementwise},
      {"norms", {.memory_gib = 6}, run_norms},
      {"router_quant", {.memory_gib = 3}, run_router_quant},
      {"gemm_bf16", {.memory_gib = 20}, run_gemm_bf16},
      {"gemm_fp8", {.compute_capability = 89, .memory_gib = 12}, run_gemm_fp8},
      {"grouped", {.memory_gib = 24}, run_grouped},
      {"latent_moe", {.memory_gib = 50}, run_latent_moe},
      {"kda", {.memory_gib = 30}, run_kda},
      {"attention", {.memory_gib = 8}, run_attention},
      {"optimizer", {.memory_gib = 20}, run_optimizer},
      {"copies", {.memory_gib = 2}, run_copies},
      {"overlap", {.memory_gib = 8}, run_overlap},
      {"moonep", {.memory_gib = 10}, run_moonep},
      {"nccl", {.gpus = 2, .memory_gib = 6, .nccl = true}, run_nccl},
  };
  return all;
}

namespace {

struct Arguments {
  BenchOptions bench;
  int gpus = 0;
  std::string out, only;
};

const char* const kUsage =
    "usage: k3sim_calibrate [--gpus N] [--quick] [--sustained] [--check] [--only FAMILY,...] [--seed N] --out "
    "FILE.csv\n";

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] {
      if (i + 1 >= argc) throw std::invalid_argument(arg + " needs a value");
      return std::string(argv[++i]);
    };
    if (arg == "--quick")
      a.bench.quick = true;
    else if (arg == "--sustained")
      a.bench.sustained = true;
    else if (arg == "--check")
      a.bench.check_only = true;
    else if (arg == "--gpus")
      a.gpus = std::stoi(value());
    else if (arg == "--seed")
      a.bench.seed = std::stoull(value());
    else if (arg == "--only")
      a.only = "," + value() + ",";
    else if (arg == "--out")
      a.out = value();
    else
      throw std::invalid_argument("unknown option " + arg);
  }
  if (a.out.empty() && !a.bench.check_only) throw std::invalid_argument("--out FILE.csv is missing");
  if (a.gpus < 0) throw std::invalid_argument("--gpus must be at least 1");
  return a;
}

// Runs one family; true unless a result was wrong.
bool run_family(const Family& f, Bench& bench, const MachineFacts& machine) {
  if (const std::string reason = skip_reason(f.needs, machine); !reason.empty()) {
    bench.note(concat("skipped ", f.name, ": ", reason));
    return true;
  }
  try {
    f.run(bench);
    return true;
  } catch (const WrongResult& e) {
    bench.note(concat("refused ", f.name, ": ", e.what()));
    return false;
  } catch (const CudaFailure& e) {
    bench.note(concat("skipped the rest of ", f.name, ": ", e.what()));
    return cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
  }
}

int calibrate(const Arguments& a) {
  const MachineReport machine = inspect_machine(a.gpus);
  std::fputs((machine.header[0] + "\n").c_str(), stderr);
  std::unique_ptr<MeasurementWriter> writer;
  if (!a.bench.check_only) writer = std::make_unique<MeasurementWriter>(a.out, machine.header);
  if (writer && writer->resumed_rows() > 0)
    std::fputs(concat("resuming after ", writer->resumed_rows(), " rows\n").c_str(), stderr);
  BenchOptions options = a.bench;
  options.gpus = machine.facts.gpus;
  Bench bench(options, machine.facts, writer.get());
  Progress progress(int(families().size()), isatty(STDERR_FILENO) != 0);
  bool good = true;
  for (const Family& f : families()) {
    if (!a.only.empty() && a.only.find("," + std::string(f.name) + ",") == std::string::npos) continue;
    progress.step(f.name);
    const auto begin = std::chrono::steady_clock::now();
    good = run_family(f, bench, machine.facts) && good;
    K3_CUDA(cudaSetDevice(0));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (std::getenv("K3SIM_CALIBRATE_TIMES") != nullptr)
      std::fputs(concat(f.name, " took ", spent.count(), " s\n").c_str(), stderr);
  }
  if (writer) {
    writer->add_note("found after: " + thermal_state(options.gpus));
    writer->finish();
  }
  std::fputs(concat(bench.checks(), " checks ", good ? "passed" : "made, some FAILED", "\n").c_str(), stderr);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace k3sim

int main(int argc, char** argv) {
  try {
    return k3sim::calibrate(k3sim::parse(argc, argv));
  } catch (const std::invalid_argument& e) {
    std::fputs((std::string("error: ") + e.what() + "\n" + k3sim::kUsage).c_str(), stderr);
    return 2;
  } catch (const k3sim::CudaFailure& e) {
    std::fputs((std::string("error: ") + e.what() + "\n").c_str(), stderr);
    return 3;
  } catch (const std::exception& e) {
    std::fputs((std::string(e.what()) + "\n").c_str(), stderr);
    return 2;
  }
}
