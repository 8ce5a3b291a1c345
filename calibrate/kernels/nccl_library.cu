// Loading libnccl; see the header.
// Source: dlopen(3).
#include "calibrate/kernels/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "calibrate/kernels/cuda_check.h"

namespace k3sim {

template <class F>
void NcclLibrary::resolve(F& f, const char* name) {
  if (handle_ == nullptr) return;
  f = reinterpret_cast<F>(dlsym(handle_, name));
  if (f == nullptr && problem_.empty()) problem_ = concat("libnccl has no ", name);
}

NcclLibrary::NcclLibrary() {
  setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  const char* chosen = std::getenv("K3SIM_NCCL");
  for (const char* name : {chosen, "libnccl.so.2", "libnccl.so"})
    if (name != nullptr && handle_ == nullptr) handle_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (handle_ == nullptr) problem_ = concat("libnccl.so.2 cannot be loaded (", dlerror(), "); K3SIM_NCCL may name it");
  resolve(get_version_, "ncclGetVersion");
  resolve(comm_init_all_, "ncclCommInitAll");
  resolve(comm_destroy_, "ncclCommDestroy");
  resolve(group_start_, "ncclGroupStart");
  resolve(group_end_, "ncclGroupEnd");
  resolve(error_string_, "ncclGetErrorString");
  resolve(all_reduce_, "ncclAllReduce");
  resolve(all_gather_, "ncclAllGather");
  resolve(reduce_scatter_, "ncclReduceScatter");
  resolve(send_, "ncclSend");
  resolve(recv_, "ncclRecv");
}

int NcclLibrary::version() const {
  int v = 0;
  if (problem_.empty()) check(get_version_(&v), "ncclGetVersion");
  return v;
}

void NcclLibrary::check(int status, const char* call) const {
  if (status != 0) throw CudaFailure(concat(call, ": ", error_string_(status)));
}

std::vector<NcclComm> NcclLibrary::init_all(int gpus) const {
  std::vector<NcclComm> comms(gpus);
  check(comm_init_all_(comms.data(), gpus, nullptr), "ncclCommInitAll");
  return comms;
}

}  // namespace k3sim
