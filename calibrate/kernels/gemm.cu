// BF16 dense GEMM through cuBLAS (rows "linear": cublasGemmEx, what frameworks call) and cuBLASLt (forward, rows
// "cublaslt_linear"), FP8 through cuBLASLt: y = x W^T, its input gradient and its weight gradient.
//   fwd   Y[m,n] = X[m,k] W[n,k]^T        dgrad dX[m,k] = dY[m,n] W[n,k]        wgrad dW[n,k] = dY[m,n]^T X[m,k]
//   FP8 (e4m3, fast accumulation) needs both operands with the reduced dimension innermost, so its gradients read
//   copies that are stored transposed; scales are one per tensor, or one per row.
// Every shape is checked on 512 sampled elements in double precision before it is timed.
// Source: cuBLASLt documentation; hardware.md section 5.1.
#include <cuda_fp8.h>

#include <algorithm>

#include "calibrate/harness/shapes.h"
#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/cublas_gemm.h"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

constexpr double kMaxFlops = 6.5e12;

std::vector<GemmShape> design(bool quick) {
  std::vector<GemmShape> shapes = model_gemm_shapes({1024, 2048, 4096, 8192, 16384});
  const auto random = log_random_gemm_shapes(quick ? 12 : 70, 11, 2e12);
  if (quick) {
    std::vector<GemmShape> few;
    for (std::size_t i = 0; i < shapes.size(); i += 7) few.push_back(shapes[i]);
    shapes = few;
  }
  shapes.insert(shapes.end(), random.begin(), random.end());
  std::erase_if(shapes, [](const GemmShape& s) { return s.flops() > kMaxFlops; });
  return shapes;
}

// Buffers as large as the largest operand, filled once with random numbers.
struct Operands {
  DeviceBuffer<bf16> x, w, y;
  explicit Operands(const std::vector<GemmShape>& shapes, Bench& bench) {
    std::size_t nx = 0, nw = 0, ny = 0;
    for (const auto& s : shapes) {
      nx = std::max(nx, std::size_t(s.m * s.k));
      nw = std::max(nw, std::size_t(s.n * s.k));
      ny = std::max(ny, std::size_t(s.m * s.n));
    }
    x = random_buffer<bf16>(std::max(nx, nw), bench.next_seed());
    w = random_buffer<bf16>(std::max(nx, nw), bench.next_seed(), {.scale = 0.02f});
    y = random_buffer<bf16>(std::max({nx, nw, ny}), bench.next_seed());
  }
};

void poison(void* data, std::size_t bytes) {
  K3_CUDA(cudaMemset(data, 0xff, bytes));
}

struct Pass {
  const char* name;
  LtShape shape;
  const bf16* a;
  const bf16* b;
};

void check_and_time(Bench& bench, const KernelId& id, const Pass& pass, bf16* out,
                    const std::function<void()>& launch) {
  poison(out, std::size_t(pass.shape.m * pass.shape.n) * sizeof(bf16));
  launch();
  bench.verify(id.key(), sampled_matmul_error(pass.shape, pass.a, pass.b, out, bench.next_seed()), 1e-2);
  bench.time(id, launch);
}

void run_bf16(Bench& bench, const GemmShape& s, const Pass& pass, bf16* out) {
  const KernelId id{"gemm", "linear", pass.name, "bf16", s.params(), s.flops(), s.bytes(2, 2)};
  if (!bench.options().check_only && bench.skip(id)) return;
  const auto launch = [&] { cublas_gemm(pass.shape, pass.a, pass.b, out, bench.stream()); };
  check_and_time(bench, id, pass, out, launch);
  if (id.pass != "fwd") return;
  KernelId lt_id = id;
  lt_id.kernel = "cublaslt_linear";
  const LtMatmul product(pass.shape);
  check_and_time(bench, lt_id, pass, out, [&] { product.run(pass.a, pass.b, nullptr, out, bench.stream()); });
}

void bf16_family(Bench& bench) {
  const auto shapes = design(bench.options().quick);
  Operands buffers(shapes, bench);
  DeviceBuffer<bf16> out(buffers.y.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const GemmShape& s = shapes[i];
    run_bf16(bench, s, {"fwd", {.m = s.m, .n = s.n, .k = s.k, .b_transposed = true}, buffers.x.get(), buffers.w.get()},
             out.get());
    const bool gradients = s.m == 1024 || s.m == 4096 || s.m == 16384 || i % 4 == 0;
    if (!gradients) continue;
    run_bf16(bench, s, {"dgrad", {.m = s.m, .n = s.k, .k = s.n}, buffers.y.get(), buffers.w.get()}, out.get());
    run_bf16(bench, s,
             {"wgrad", {.m = s.n, .n = s.k, .k = s.m, .a_transposed = true}, buffers.y.get(), buffers.x.get()},
             out.get());
  }
}

__global__ void to_fp8(const bf16* in, __nv_fp8_e4m3* out, std::size_t n) {
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += std::size_t(gridDim.x) * blockDim.x)
    out[i] = __nv_fp8_e4m3(__bfloat162float(in[i]));
}

DeviceBuffer<__nv_fp8_e4m3> random_fp8(std::size_t n, Bench& bench) {
  const auto source = random_buffer<bf16>(n, bench.next_seed());
  DeviceBuffer<__nv_fp8_e4m3> out(n);
  to_fp8<<<1024, 256>>>(source.get(), out.get(), n);
  K3_CUDA(cudaGetLastError());
  K3_CUDA(cudaDeviceSynchronize());
  return out;
}

struct Fp8Operands {
  DeviceBuffer<__nv_fp8_e4m3> a, b;
  DeviceBuffer<bf16> out;
  DeviceBuffer<float> ones;
};

void run_fp8(Bench& bench, const GemmShape& s, const char* pass, LtShape shape, Fp8Operands& buffers) {
  const char* kernel = shape.row_scales ? "cublaslt_fp8_rowwise" : "cublaslt_fp8_tensorwise";
  const KernelId id{"gemm", kernel, pass, "fp8", s.params(), s.flops(), s.bytes(1, 2)};
  if (!bench.options().check_only && bench.skip(id)) return;
  shape.in = CUDA_R_8F_E4M3;
  shape.b_transposed = true;
  const LtMatmul product(shape, buffers.ones.get(), buffers.ones.get());
  poison(buffers.out.get(), std::size_t(shape.m * shape.n) * sizeof(bf16));
  const auto launch = [&] {
    product.run(buffers.a.get(), buffers.b.get(), nullptr, buffers.out.get(), bench.stream());
  };
  launch();
  bench.verify(id.key(),
               sampled_matmul_error_fp8(shape, buffers.a.get(), buffers.b.get(), buffers.out.get(), bench.next_seed()),
               1e-2);
  bench.time(id, launch);
}

void fp8_family(Bench& bench) {
  std::vector<GemmShape> shapes = {{4096, 12288, 7168}, {8192, 12288, 7168},  {8192, 6144, 7168}, {8192, 3584, 7168},
                                   {4096, 7168, 18432}, {16384, 12288, 7168}, {1024, 7168, 7168}, {2048, 7168, 7168}};
  if (bench.options().quick)
    shapes.resize(3);
  else
    for (const auto& s : model_gemm_shapes({2048, 8192}))
      if (s.n % 16 == 0 && s.flops() < 3e12) shapes.push_back(s);
  std::size_t largest = 0, results = 0;
  for (const auto& s : shapes) {
    largest = std::max({largest, std::size_t(s.m * s.k), std::size_t(s.n * s.k), std::size_t(s.m * s.n)});
    results = std::max({results, std::size_t(s.m * s.n), std::size_t(s.m * s.k), std::size_t(s.n * s.k)});
  }
  Fp8Operands buffers{random_fp8(largest, bench), random_fp8(largest, bench), DeviceBuffer<bf16>(results),
                      DeviceBuffer<float>(65536)};
  buffers.ones.upload(std::vector<float>(65536, 1.0f));
  bool row_scales = true;
  for (const auto& s : shapes) {
    run_fp8(bench, s, "fwd", {.m = s.m, .n = s.n, .k = s.k}, buffers);
    run_fp8(bench, s, "dgrad", {.m = s.m, .n = s.k, .k = s.n}, buffers);
    run_fp8(bench, s, "wgrad", {.m = s.n, .n = s.k, .k = s.m}, buffers);
    if (!row_scales) continue;
    try {
      run_fp8(bench, s, "fwd", {.m = s.m, .n = s.n, .k = s.k, .row_scales = true}, buffers);
    } catch (const CudaFailure& e) {
      row_scales = false;
      bench.note(std::string("skipped gemm cublaslt_fp8_rowwise: ") + e.what());
    }
  }
}

}  // namespace

void run_gemm_bf16(Bench& bench) {
  bf16_family(bench);
}
void run_gemm_fp8(Bench& bench) {
  fp8_family(bench);
}

}  // namespace k3sim
