// Machine description; see the header. NVML is resolved with dlopen so that it is optional.
// Source: NVML API reference (nvmlDeviceGetClockInfo, GetPowerUsage, GetPowerManagementLimit, GetNvLinkState).
#include "calibrate/kernels/machine.h"

#include <dlfcn.h>

#include <algorithm>
#include <ctime>

#include "calibrate/kernels/cuda_check.h"
#include "calibrate/kernels/nccl_library.h"

namespace k3sim {

namespace {

class Nvml {
 public:
  Nvml() : lib_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    auto init = find<int (*)()>("nvmlInit_v2");
    ok_ = init != nullptr && init() == 0;
  }
  bool ok() const { return ok_; }
  void* device(int index) const {
    void* d = nullptr;
    if (auto f = find<int (*)(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2")) f(unsigned(index), &d);
    return d;
  }
  unsigned clock(void* d, int type, const char* call) const {
    unsigned v = 0;
    if (auto f = find<int (*)(void*, int, unsigned*)>(call)) f(d, type, &v);
    return v;
  }
  unsigned value(void* d, const char* call) const {
    unsigned v = 0;
    if (auto f = find<int (*)(void*, unsigned*)>(call)) f(d, &v);
    return v;
  }
  std::string driver() const {
    char text[96] = "unknown";
    if (auto f = find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion")) f(text, sizeof text);
    return text;
  }
  int active_links(void* d) const {
    auto f = find<int (*)(void*, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState");
    int n = 0;
    for (unsigned link = 0; f != nullptr && link < 18; ++link) {
      unsigned up = 0;
      if (f(d, link, &up) == 0 && up == 1) ++n;
    }
    return n;
  }

 private:
  template <class F>
  F find(const char* name) const {
    return lib_ == nullptr ? nullptr : reinterpret_cast<F>(dlsym(lib_, name));
  }
  void* lib_;
  bool ok_ = false;
};

constexpr int kSmClock = 1, kMemoryClock = 2;

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string gpu_line(const cudaDeviceProp& p, const Nvml& nvml, int gpus) {
  void* d = nvml.ok() ? nvml.device(0) : nullptr;
  const double gib = double(p.totalGlobalMem) / double(1ull << 30);
  std::string line = concat("gpu: ", p.name, " x", gpus, ", ", p.multiProcessorCount, " SMs, compute capability ",
                            p.major, ".", p.minor, ", ", int(gib + 0.5), " GiB, L2 ", p.l2CacheSize >> 20, " MiB");
  if (d != nullptr)
    line +=
        concat(", driver ", nvml.driver(), ", power limit ", nvml.value(d, "nvmlDeviceGetPowerManagementLimit") / 1000,
               " W, SM clock at most ", nvml.clock(d, kSmClock, "nvmlDeviceGetMaxClockInfo"), " MHz (not locked)");
  return line;
}

}  // namespace

std::string thermal_state(int gpus) {
  const Nvml nvml;
  if (!nvml.ok()) return "clocks and power: NVML cannot be loaded";
  std::string text;
  for (int g = 0; g < gpus; ++g) {
    void* d = nvml.device(g);
    unsigned celsius = nvml.clock(d, 0, "nvmlDeviceGetTemperature");
    text += concat(g == 0 ? "" : "; ", "gpu ", g, ": SM ", nvml.clock(d, kSmClock, "nvmlDeviceGetClockInfo"),
                   " MHz, memory ", nvml.clock(d, kMemoryClock, "nvmlDeviceGetClockInfo"), " MHz, ",
                   nvml.value(d, "nvmlDeviceGetPowerUsage") / 1000, " W, ", celsius, " C");
  }
  return text;
}

MachineReport inspect_machine(int gpus) {
  int present = 0;
  if (const cudaError_t e = cudaGetDeviceCount(&present); e != cudaSuccess)
    throw CudaFailure(concat("no usable GPU: ", cudaGetErrorString(e)));
  MachineReport report;
  const int used = gpus == 0 ? present : std::min(gpus, present);
  cudaDeviceProp p{};
  K3_CUDA(cudaGetDeviceProperties(&p, 0));
  std::size_t smallest = ~std::size_t(0);
  bool peers = used > 1;
  for (int d = 0; d < used; ++d) {
    std::size_t free = 0, total = 0;
    K3_CUDA(cudaSetDevice(d));
    K3_CUDA(cudaMemGetInfo(&free, &total));
    smallest = std::min(smallest, free);
    for (int o = 0; o < used; ++o) {
      int can = 1;
      if (o != d) K3_CUDA(cudaDeviceCanAccessPeer(&can, d, o));
      peers = peers && can != 0;
    }
  }
  const NcclLibrary nccl;
  const Nvml nvml;
  report.facts = {used, p.major * 10 + p.minor, double(smallest) / double(1ull << 30), peers, nccl.problem()};
  int runtime = 0;
  K3_CUDA(cudaRuntimeGetVersion(&runtime));
  const int links = nvml.ok() ? nvml.active_links(nvml.device(0)) : 0;
  report.header = {
      gpu_line(p, nvml, used),
      concat("software: CUDA runtime ", runtime / 1000, ".", runtime % 1000 / 10, ", cuBLASLt ", cublasLtGetVersion(),
             ", NCCL ", nccl.problem().empty() ? concat(nccl.version()) : "absent", "; date ", date_now()),
      concat("links: ", links, " active NVLinks on gpu 0, ", present, " GPUs present, ", used, " in use, peer access ",
             used < 2 ? "not tried"
             : peers  ? "yes"
                      : "no"),
      "method: k3sim calibrate; CUDA events, median, repeated until the 95 % interval of the median is within 2 % (60 "
      "to "
      "200 repeats, 20 with --quick, fewer for kernels above 2 ms) after 5 warm-up calls (40 ms of them with "
      "--sustained), cold repeats enqueued in "
      "batches; L2 flushed before every repeat "
      "except sections copy, launch, overlap, nccl and rows named *_warm; moonep, overlap and copies of several GPUs: "
      "wall "
      "clock from one host thread",
      "implementation: gemm linear = cublasGemmEx, cublaslt_* = cuBLASLt first heuristic; k3_* = this "
      "project's CUDA kernels (k3_latent_moe: experts as one cuBLASLt product each); nccl = NCCL, NVLS off",
      "found before: " + thermal_state(used)};
  return report;
}

}  // namespace k3sim
