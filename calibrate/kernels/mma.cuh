// Tensor-core tiles in registers: mma.sync m16n8k16 on BF16 with FP32 accumulators, ldmatrix, and cp.async.
//   A fragment (16x16, row-major): a[0] = rows 0-7, cols 0-7; a[1] = rows 8-15, cols 0-7; a[2], a[3] = cols 8-15.
//   B fragment (16x8): b[0] = k 0-7, b[1] = k 8-15, for n = lane / 4.   Accumulator: c[0..1] row lane/4, c[2..3] row +
//   8, columns 2 * (lane % 4) + {0, 1}. An accumulator pair of two neighbouring n-tiles, rounded, is an A fragment.
// Source: PTX ISA, warp-level matrix instructions. Works from compute capability 8.0; about 60 % of Hopper's peak.
#pragma once

#include <cstdint>

#include "calibrate/kernels/vec.cuh"

namespace k3sim {

__device__ inline std::uint32_t pack2(float lo, float hi) {
  const __nv_bfloat162 p = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<const std::uint32_t*>(&p);
}

__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline std::uint32_t shared_address(const void* p) {
  return std::uint32_t(__cvta_generic_to_shared(p));
}

__device__ inline void ldmatrix4(std::uint32_t (&r)[4], const bf16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}

__device__ inline void ldmatrix4_transposed(std::uint32_t (&r)[4], const bf16* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}

// A fragment at (row, k) of a matrix stored [m][k] with pitch `ld`, or stored [k][m] when kTransposed.
template <bool kTransposed>
__device__ inline void load_a(std::uint32_t (&r)[4], const bf16* base, int ld, int row, int k) {
  const int lane = threadIdx.x % 32;
  if constexpr (kTransposed)
    ldmatrix4_transposed(r, base + (k + lane % 8 + (lane / 16) * 8) * ld + row + (lane / 8 % 2) * 8);
  else
    ldmatrix4(r, base + (row + lane % 16) * ld + k + (lane / 16) * 8);
}

// Two B fragments, for columns n..n+7 (r[0], r[1]) and n+8..n+15 (r[2], r[3]), of a matrix stored [n][k] with pitch
// `ld`, or stored [k][n] when kTransposed.
template <bool kTransposed>
__device__ inline void load_b(std::uint32_t (&r)[4], const bf16* base, int ld, int n, int k) {
  const int lane = threadIdx.x % 32;
  if constexpr (kTransposed)
    ldmatrix4_transposed(r, base + (k + lane % 16) * ld + n + (lane / 16) * 8);
  else
    ldmatrix4(r, base + (n + lane % 8 + (lane / 16) * 8) * ld + k + (lane / 8 % 2) * 8);
}

__device__ inline void copy_async16(void* to_shared, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to_shared)), "l"(from), "r"(bytes));
}
__device__ inline void copy_commit() {
  asm volatile("cp.async.commit_group;");
}
template <int kPending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}

}  // namespace k3sim
