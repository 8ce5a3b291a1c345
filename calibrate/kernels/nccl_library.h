// The few NCCL entry points that are timed, resolved at run time from libnccl, so that nothing needs it to build.
//   Looked for as libnccl.so.2 and libnccl.so on the loader's path, then as K3SIM_NCCL. NVLink multicast stays off
//   (NCCL_NVLS_ENABLE=0 is set before the first call unless the user chose a value).
// Source: NCCL API documentation (ncclCommInitAll, group calls).
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

namespace k3sim {

using NcclComm = void*;
enum class NcclType : int { kInt8 = 0, kFloat32 = 7, kBfloat16 = 9 };

class NcclLibrary {
 public:
  // problem() is empty when the library was loaded.
  NcclLibrary();
  const std::string& problem() const { return problem_; }
  int version() const;

  std::vector<NcclComm> init_all(int gpus) const;
  void destroy(NcclComm c) const { comm_destroy_(c); }
  void group_start() const { check(group_start_(), "ncclGroupStart"); }
  void group_end() const { check(group_end_(), "ncclGroupEnd"); }
  void all_reduce(const void* in, void* out, std::size_t n, NcclType t, NcclComm c, cudaStream_t s) const {
    check(all_reduce_(in, out, n, int(t), 0, c, s), "ncclAllReduce");
  }
  void all_gather(const void* in, void* out, std::size_t n, NcclType t, NcclComm c, cudaStream_t s) const {
    check(all_gather_(in, out, n, int(t), c, s), "ncclAllGather");
  }
  void reduce_scatter(const void* in, void* out, std::size_t n, NcclType t, NcclComm c, cudaStream_t s) const {
    check(reduce_scatter_(in, out, n, int(t), 0, c, s), "ncclReduceScatter");
  }
  void send(const void* in, std::size_t n, NcclType t, int peer, NcclComm c, cudaStream_t s) const {
    check(send_(in, n, int(t), peer, c, s), "ncclSend");
  }
  void recv(void* out, std::size_t n, NcclType t, int peer, NcclComm c, cudaStream_t s) const {
    check(recv_(out, n, int(t), peer, c, s), "ncclRecv");
  }

 private:
  void check(int status, const char* call) const;
  template <class F>
  void resolve(F& f, const char* name);
  void* handle_ = nullptr;
  std::string problem_;
  int (*get_version_)(int*) = nullptr;
  int (*comm_init_all_)(NcclComm*, int, const int*) = nullptr;
  int (*comm_destroy_)(NcclComm) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*all_gather_)(const void*, void*, std::size_t, int, NcclComm, cudaStream_t) = nullptr;
  int (*reduce_scatter_)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*send_)(const void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*recv_)(void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
};

}  // namespace k3sim
