// Grouped GEMM kernels: 128x128 tiles, four warps of 64x64, K in steps of 64 through a three-stage cp.async pipeline.
//   Each block finds its group with a warp-wide prefix sum over the tile counts, so the host never needs the row
//   counts.
// Source: see the header; PTX ISA for mma.sync and cp.async.
#include "calibrate/kernels/grouped_gemm.cuh"
#include "calibrate/kernels/mma.cuh"

namespace k3sim {

namespace {

constexpr int kTile = 128, kStep = 64, kStages = 3, kThreads = 128;
constexpr int kPitchK = kStep + 8;    // tile stored [row][k]
constexpr int kPitchRow = kTile + 8;  // tile stored [k][row]
constexpr int kTileElements = kTile * kPitchK > kStep* kPitchRow ? kTile* kPitchK : kStep* kPitchRow;
constexpr int kSharedBytes = 2 * kStages * kTileElements * int(sizeof(bf16));

// One operand: element (row, k) is at base[row * ld + k], or at base[k * ld + row] when transposed.
struct Operand {
  const bf16* base;
  long long ld;
  int rows;   // valid rows
  int depth;  // valid k
};

template <bool kTransposed>
__device__ void stage_tile(bf16* shared, const Operand& o, int row0, int k0) {
  for (int v = threadIdx.x; v < kTile * kStep / 8; v += kThreads) {
    if constexpr (kTransposed) {
      const int k = v / (kTile / 8), r = v % (kTile / 8) * 8;
      const bool valid = k0 + k < o.depth && row0 + r < o.rows;
      copy_async16(shared + k * kPitchRow + r, valid ? o.base + (k0 + k) * o.ld + row0 + r : o.base, valid);
    } else {
      const int r = v / (kStep / 8), k = v % (kStep / 8) * 8;
      const bool valid = row0 + r < o.rows && k0 + k < o.depth;
      copy_async16(shared + r * kPitchK + k, valid ? o.base + (row0 + r) * o.ld + k0 + k : o.base, valid);
    }
  }
}

template <bool kAT, bool kBT>
__device__ void multiply_stage(float (&acc)[4][8][4], const bf16* a, const bf16* b, int warp_m, int warp_n) {
#pragma unroll
  for (int k = 0; k < kStep; k += 16) {
    std::uint32_t fa[4][4], fb[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) load_a<kAT>(fa[i], a, kAT ? kPitchRow : kPitchK, warp_m + i * 16, k);
#pragma unroll
    for (int j = 0; j < 4; ++j) load_b<kBT>(fb[j], b, kBT ? kPitchRow : kPitchK, warp_n + j * 16, k);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) mma(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
  }
}

struct Output {
  bf16* base;
  long long ld;
  int rows;
};

__device__ void write_tile(const float (&acc)[4][8][4], const Output& out, int row0, int col0) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + i * 16 + half * 8 + lane / 4;
      if (row >= out.rows) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        *reinterpret_cast<std::uint32_t*>(out.base + row * out.ld + col0 + j * 8 + lane % 4 * 2) =
            pack2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
    }
}

template <bool kAT, bool kBT>
__device__ void tile_product(const Operand& a, const Operand& b, const Output& out, int row0, int col0) {
  extern __shared__ bf16 shared[];
  const int steps = (a.depth + kStep - 1) / kStep;
  const int warp_m = threadIdx.x / 32 / 2 * 64, warp_n = threadIdx.x / 32 % 2 * 64;
  bf16 *sa = shared, *sb = shared + kStages * kTileElements;
  const auto fetch = [&](int step) {
    if (step < steps) {
      stage_tile<kAT>(sa + step % kStages * kTileElements, a, row0, step * kStep);
      stage_tile<kBT>(sb + step % kStages * kTileElements, b, col0, step * kStep);
    }
    copy_commit();
  };
  float acc[4][8][4] = {};
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  for (int s = 0; s < steps; ++s) {
    copy_wait<kStages - 2>();
    __syncthreads();
    fetch(s + kStages - 1);
    multiply_stage<kAT, kBT>(acc, sa + s % kStages * kTileElements, sb + s % kStages * kTileElements, warp_m, warp_n);
  }
  write_tile(acc, out, row0 + warp_m, col0 + warp_n);
}

// Group and row tile of the tile-th row tile; group = -1 beyond the end. Every warp computes the same answer.
__device__ void find_group(const int* offsets, int groups, int tile, int& group, int& row_tile) {
  const int lane = threadIdx.x % 32;
  int before = 0;
  group = -1;
  for (int first = 0; first < groups; first += 32) {
    const int g = first + lane;
    const int tiles = g < groups ? (offsets[g + 1] - offsets[g] + kTile - 1) / kTile : 0;
    int inclusive = tiles;
    for (int o = 1; o < 32; o *= 2) {
      const int left = __shfl_up_sync(0xffffffffu, inclusive, o);
      if (lane >= o) inclusive += left;
    }
    const unsigned hit = __ballot_sync(0xffffffffu, before + inclusive > tile);
    if (hit != 0) {
      const int at = __ffs(int(hit)) - 1;
      group = first + at;
      row_tile = tile - before - __shfl_sync(0xffffffffu, inclusive - tiles, at);
      return;
    }
    before += __shfl_sync(0xffffffffu, inclusive, 31);
  }
}

// out[r, :] = a[r, :] * op(w[g]); the weight matrix is [rows of w][cols of w].
template <bool kBT>
__global__ void __launch_bounds__(kThreads)
    by_rows(const int* offsets, int groups, const bf16* a, const bf16* w, bf16* out, int depth, int width) {
  int group, row_tile;
  find_group(offsets, groups, blockIdx.y, group, row_tile);
  if (group < 0) return;
  const long long first = offsets[group];
  const int rows = offsets[group + 1] - int(first);
  const Operand oa{a + first * depth, depth, rows, depth};
  const Operand ob{w + (long long)group * depth * width, kBT ? width : depth, width, depth};
  tile_product<false, kBT>(oa, ob, {out + first * width, width, rows}, row_tile * kTile, blockIdx.x * kTile);
}

__global__ void __launch_bounds__(kThreads)
    by_weight(const int* offsets, const bf16* dy, const bf16* x, bf16* dw, int n, int k) {
  const int group = blockIdx.z;
  const long long first = offsets[group];
  const int rows = offsets[group + 1] - int(first);
  const Operand oa{dy + first * n, n, n, rows};
  const Operand ob{x + first * k, k, k, rows};
  tile_product<true, true>(oa, ob, {dw + (long long)group * n * k, k, n}, blockIdx.y * kTile, blockIdx.x * kTile);
}

template <class Kernel, class... Args>
void launch(Kernel kernel, dim3 grid, cudaStream_t stream, Args... args) {
  K3_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  kernel<<<grid, kThreads, kSharedBytes, stream>>>(args...);
}

unsigned row_tiles(const GroupedShape& s) {
  return unsigned(s.rows / kTile + s.groups);
}

}  // namespace

void grouped_forward(const GroupedShape& s, const bf16* x, const bf16* w, bf16* out, cudaStream_t stream) {
  launch(by_rows<false>, dim3(s.n / kTile, row_tiles(s)), stream, s.offsets, s.groups, x, w, out, s.k, s.n);
}

void grouped_input_grad(const GroupedShape& s, const bf16* dy, const bf16* w, bf16* dx, cudaStream_t stream) {
  launch(by_rows<true>, dim3(s.k / kTile, row_tiles(s)), stream, s.offsets, s.groups, dy, w, dx, s.n, s.k);
}

void grouped_weight_grad(const GroupedShape& s, const bf16* dy, const bf16* x, bf16* dw, cudaStream_t stream) {
  launch(by_weight, dim3(s.k / kTile, s.n / kTile, s.groups), stream, s.offsets, dy, x, dw, s.n, s.k);
}

}  // namespace k3sim
