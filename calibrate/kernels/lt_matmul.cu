// cuBLASLt planning and the sampled double-precision reference; see the header.
// Source: cuBLASLt documentation.
#include "calibrate/kernels/lt_matmul.h"

#include <cuda_fp8.h>

#include <map>

#include "calibrate/kernels/compare.h"

namespace k3sim {

namespace {

constexpr std::size_t kWorkspaceBytes = 32u << 20;

struct LtDevice {
  cublasLtHandle_t handle = nullptr;
  DeviceBuffer<unsigned char> workspace{kWorkspaceBytes};
  LtDevice() { K3_CUBLAS(cublasLtCreate(&handle)); }
};

// One library handle and workspace per device and host thread; they live as long as the program.
LtDevice& lt_device() {
  thread_local std::map<int, LtDevice*> devices;
  int device = 0;
  K3_CUDA(cudaGetDevice(&device));
  LtDevice*& slot = devices[device];
  if (slot == nullptr) slot = new LtDevice;
  return *slot;
}

cublasLtMatrixLayout_t layout(cudaDataType_t type, long long rows, long long cols, int batch, long long stride) {
  cublasLtMatrixLayout_t l = nullptr;
  K3_CUBLAS(cublasLtMatrixLayoutCreate(&l, type, std::uint64_t(rows), std::uint64_t(cols), rows));
  K3_CUBLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  K3_CUBLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return l;
}

template <class T>
void set(cublasLtMatmulDesc_t op, cublasLtMatmulDescAttributes_t attribute, T value) {
  K3_CUBLAS(cublasLtMatmulDescSetAttribute(op, attribute, &value, sizeof value));
}

struct SampleView {
  long long a_row, a_col, b_row, b_col;
};

__device__ double load(const bf16* p, long long i) {
  return double(__bfloat162float(p[i]));
}
__device__ double load(const __nv_fp8_e4m3* p, long long i) {
  return double(float(p[i]));
}

template <class T>
__global__ void sample_kernel(const T* a, const T* b, const bf16* d, SampleView v, LtShape s, unsigned long long seed,
                              double* out) {
  unsigned long long x = (seed + blockIdx.x) * 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  const long long i = (long long)((x & 0xffffffff) * (unsigned long long)s.m >> 32);
  const long long j = (long long)((x >> 32) * (unsigned long long)s.n >> 32);
  double sum = 0;
  for (long long l = threadIdx.x; l < s.k; l += blockDim.x)
    sum += load(a, i * v.a_row + l * v.a_col) * load(b, l * v.b_row + j * v.b_col);
  __shared__ double part[128];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned t = 1; t < blockDim.x; ++t) sum += part[t];
  out[2 * blockIdx.x] = double(__bfloat162float(d[i * s.n + j]));
  out[2 * blockIdx.x + 1] = sum;
}

template <class T>
double sampled_error(const LtShape& s, const T* a, const T* b, const bf16* d, unsigned long long seed) {
  constexpr int kSamples = 512;
  const SampleView v{s.a_transposed ? 1 : s.k, s.a_transposed ? s.m : 1, s.b_transposed ? 1 : s.n,
                     s.b_transposed ? s.k : 1};
  DeviceBuffer<double> out(2 * kSamples);
  K3_CUDA(cudaDeviceSynchronize());
  sample_kernel<<<kSamples, 128>>>(a, b, d, v, s, seed, out.get());
  K3_CUDA(cudaGetLastError());
  const std::vector<double> both = out.download();
  std::vector<double> got, want;
  for (int i = 0; i < kSamples; ++i) got.push_back(both[2 * i]), want.push_back(both[2 * i + 1]);
  return relative_error(got, want);
}

}  // namespace

LtMatmul::LtMatmul(const LtShape& s, const float* a_scale, const float* b_scale) {
  K3_CUBLAS(cublasLtMatmulDescCreate(&op_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set(op_, CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(op_, CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (a_scale != nullptr) set_scales(a_scale, b_scale, s.row_scales);
  a_ = layout(s.in, s.b_transposed ? s.k : s.n, s.b_transposed ? s.n : s.k, s.batch, s.b_shared ? 0 : s.n * s.k);
  b_ = layout(s.in, s.a_transposed ? s.m : s.k, s.a_transposed ? s.k : s.m, s.batch, s.m * s.k);
  d_ = layout(s.out, s.n, s.m, s.batch, s.m * s.n);
  cublasLtMatmulPreference_t preference = nullptr;
  K3_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  K3_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                                                 sizeof kWorkspaceBytes));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(lt_device().handle, op_, a_, b_, d_, d_, preference, 1, &result, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  K3_CUBLAS(status);
  if (found == 0) throw CudaFailure("cuBLASLt has no algorithm for this product");
  algo_ = result.algo;
}

void LtMatmul::set_scales(const float* a_scale, const float* b_scale, bool rows) {
  set(op_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b_scale);
  set(op_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a_scale);
  set(op_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  if (!rows) return;
  set(op_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F});
  set(op_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, std::int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F});
}

LtMatmul::~LtMatmul() {
  cublasLtMatrixLayoutDestroy(a_);
  cublasLtMatrixLayoutDestroy(b_);
  cublasLtMatrixLayoutDestroy(d_);
  cublasLtMatmulDescDestroy(op_);
}

void LtMatmul::run(const void* a, const void* b, const void* c, void* d, cudaStream_t stream, float alpha,
                   float beta) const {
  LtDevice& lt = lt_device();
  K3_CUBLAS(cublasLtMatmul(lt.handle, op_, &alpha, b, a_, a, b_, &beta, c == nullptr ? d : c, d_, d, d_, &algo_,
                           lt.workspace.get(), kWorkspaceBytes, stream));
}

double sampled_matmul_error(const LtShape& s, const bf16* a, const bf16* b, const bf16* d, unsigned long long seed) {
  return sampled_error(s, a, b, d, seed);
}

double sampled_matmul_error_fp8(const LtShape& s, const void* a, const void* b, const bf16* d,
                                unsigned long long seed) {
  return sampled_error(s, static_cast<const __nv_fp8_e4m3*>(a), static_cast<const __nv_fp8_e4m3*>(b), d, seed);
}

}  // namespace k3sim
