// Peer access between all pairs.
// Source: CUDA peer-to-peer API (no multicast objects are ever created).
#include "calibrate/kernels/multi_gpu.h"

namespace k3sim {

bool enable_peer_access(int gpus) {
  for (int a = 0; a < gpus; ++a) {
    K3_CUDA(cudaSetDevice(a));
    for (int b = 0; b < gpus; ++b) {
      if (a == b) continue;
      int can = 0;
      K3_CUDA(cudaDeviceCanAccessPeer(&can, a, b));
      if (can == 0) return false;
      const cudaError_t status = cudaDeviceEnablePeerAccess(b, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
      else
        K3_CUDA(status);
    }
  }
  K3_CUDA(cudaSetDevice(0));
  return true;
}

}  // namespace k3sim
