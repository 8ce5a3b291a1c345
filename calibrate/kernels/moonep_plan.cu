// MoonEP planner and address kernels; see moonep_kernels.cuh.
// Source: k3-facts.md section 3.3, steps 1 to 5.
#include "calibrate/kernels/moonep_kernels.cuh"

namespace k3sim {

namespace {

constexpr int kThreads = 1024;

struct Best {
  int value, index;
};

// Largest value, lowest index on ties, over the warp; every lane gets it.
__device__ Best warp_max(Best b) {
  for (int o = 16; o > 0; o >>= 1) {
    const int v = __shfl_xor_sync(0xffffffffu, b.value, o), i = __shfl_xor_sync(0xffffffffu, b.index, o);
    if (v > b.value || (v == b.value && i < b.index)) b = {v, i};
  }
  return b;
}

__device__ Best max_of(const int* values, int n, int sign) {
  Best best{-(1 << 30), 1 << 30};
  for (int i = threadIdx.x % 32; i < n; i += 32)
    if (sign * values[i] > best.value) best = {sign * values[i], i};
  return warp_max(best);
}

// Step 2, by one warp.
__device__ void quotas(int ranks, int* balance, int* quota) {
  for (;;) {
    const Best donor = max_of(balance, ranks, 1), receiver = max_of(balance, ranks, -1);
    if (donor.value <= 0) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      quota[donor.index * ranks + receiver.index] = receiver.value;
      balance[donor.index] -= receiver.value;
      balance[receiver.index] = 0;
    }
    __syncwarp();
  }
}

// Step 3 for one donor, by one warp. rem: rows left of its own experts.
__device__ void split(const MoonepShape& s, int donor, int* quota, int* rem, int* alloc) {
  const int first = donor * s.per_rank();
  for (;;) {
    const Best d = max_of(quota, s.ranks, 1);
    if (d.value <= 0) return;
    const Best e = max_of(rem, s.per_rank(), 1);
    const int moved = min(e.value, d.value);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      alloc[donor * s.experts + first + e.index] -= moved;
      alloc[d.index * s.experts + first + e.index] += moved;
      rem[e.index] -= moved;
      quota[d.index] -= moved;
    }
    __syncwarp();
  }
}

// Step 4 for one rank, by one warp: own experts, then the others in ascending order, padded prefix sums.
__device__ void layout(const MoonepShape& s, int rank, const int* alloc, int* group_start) {
  const int own = rank * s.per_rank(), lane = threadIdx.x % 32;
  int row = 0;
  const auto pass = [&](int from, int to) {
    for (int base = from; base < to; base += 32) {
      const int e = base + lane;
      const int rows = e < to ? alloc[rank * s.experts + e] : 0;
      const int padded = (rows + s.pad - 1) / s.pad * s.pad;
      int inclusive = padded;
      for (int o = 1; o < 32; o *= 2) {
        const int left = __shfl_up_sync(0xffffffffu, inclusive, o);
        if (lane >= o) inclusive += left;
      }
      if (e < to) group_start[rank * s.experts + e] = rows > 0 ? row + inclusive - padded : -1;
      row += __shfl_sync(0xffffffffu, inclusive, 31);
    }
  };
  pass(own, own + s.per_rank());
  pass(0, own);
  pass(own + s.per_rank(), s.experts);
}

__global__ void __launch_bounds__(kThreads) plan_kernel(MoonepShape s, const int* counts, MoonepTables t) {
  extern __shared__ int shared[];
  int *rem = shared, *quota = rem + s.experts, *balance = quota + s.ranks * s.ranks;
  const int warp = threadIdx.x / 32, warps = kThreads / 32;
  for (int i = threadIdx.x; i < s.ranks; i += kThreads) balance[i] = -s.entries();
  for (int i = threadIdx.x; i < s.ranks * s.ranks; i += kThreads) quota[i] = 0;
  __syncthreads();
  for (int e = threadIdx.x; e < s.experts; e += kThreads) {
    int total = 0;
    for (int r = 0; r < s.ranks; ++r) {
      t.source_before[r * s.experts + e] = total;
      total += counts[r * s.experts + e];
      t.alloc[r * s.experts + e] = 0;
    }
    rem[e] = total;
    t.alloc[e / s.per_rank() * s.experts + e] = total;
    atomicAdd(&balance[e / s.per_rank()], total);
  }
  __syncthreads();
  if (warp == 0) quotas(s.ranks, balance, quota);
  __syncthreads();
  for (int r = warp; r < s.ranks; r += warps) split(s, r, quota + r * s.ranks, rem + r * s.per_rank(), t.alloc);
  __syncthreads();
  for (int r = warp; r < s.ranks; r += warps) layout(s, r, t.alloc, t.group_start);
  for (int e = threadIdx.x; e < s.experts; e += kThreads)
    for (int r = 0, before = 0; r < s.ranks; ++r) {
      t.alloc_before[r * s.experts + e] = before;
      before += t.alloc[r * s.experts + e];
    }
}

__global__ void count_kernel(MoonepShape s, MoonepEntries e) {
  extern __shared__ int counter[];
  for (int i = threadIdx.x; i < s.experts; i += blockDim.x) counter[i] = 0;
  __syncthreads();
  const int first = blockIdx.x * kMoonepBlock;
  for (int i = first + threadIdx.x; i < min(first + kMoonepBlock, s.entries()); i += blockDim.x)
    atomicAdd(&counter[e.expert[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < s.experts; i += blockDim.x) e.block_counts[blockIdx.x * s.experts + i] = counter[i];
}

// Counts of one expert become counts of the blocks before.
__global__ void prefix_kernel(MoonepShape s, int* block_counts, int blocks) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= s.experts) return;
  int before = 0;
#pragma unroll 8
  for (int b = 0; b < blocks; ++b) {
    const int mine = block_counts[b * s.experts + x];
    block_counts[b * s.experts + x] = before;
    before += mine;
  }
}

// One warp per block of entries numbers them in flat order, 32 at a time, and turns numbers into rows (step 5).
__global__ void address_kernel(MoonepShape s, MoonepTables t, int rank, MoonepEntries e) {
  extern __shared__ int next[];
  const int lane = threadIdx.x;
  for (int x = lane; x < s.experts; x += 32) {
    next[x] = t.source_before[rank * s.experts + x] + e.block_counts[blockIdx.x * s.experts + x];
  }
  __syncwarp();
  const int first = blockIdx.x * kMoonepBlock, last = min(first + kMoonepBlock, s.entries());
  for (int base = first; base < last; base += 32) {
    const int i = base + lane;
    const bool active = i < last;
    const int x = active ? e.expert[i] : s.experts;
    const unsigned same = __match_any_sync(0xffffffffu, x);
    const int rank_in_group = __popc(same & ((1u << lane) - 1));
    const int g = (active ? next[x] : 0) + rank_in_group;
    __syncwarp();
    if (active && rank_in_group == 0) next[x] += __popc(same);
    __syncwarp();
    if (!active) continue;
    int d = 0;  // the last rank whose rows start at or before g (empty ranks start where the next one does)
    for (int step = 32; step > 0; step /= 2)
      if (d + step < s.ranks && t.alloc_before[(d + step) * s.experts + x] <= g) d += step;
    e.code[i] = d * s.capacity_rows() + t.group_start[d * s.experts + x] + g - t.alloc_before[d * s.experts + x];
  }
}

}  // namespace

void moonep_plan_kernel(const MoonepShape& s, const int* counts, const MoonepTables& t, cudaStream_t stream) {
  const int shared = int(sizeof(int)) * (s.experts + s.ranks * s.ranks + s.ranks);
  plan_kernel<<<1, kThreads, shared, stream>>>(s, counts, t);
}

void moonep_addresses(const MoonepShape& s, const MoonepTables& t, int rank, const MoonepEntries& e,
                      cudaStream_t stream) {
  const int shared = s.experts * int(sizeof(int));
  count_kernel<<<moonep_blocks(s), 256, shared, stream>>>(s, e);
  prefix_kernel<<<(s.experts + 63) / 64, 64, 0, stream>>>(s, e.block_counts, moonep_blocks(s));
  address_kernel<<<moonep_blocks(s), 32, shared, stream>>>(s, t, rank, e);
}

}  // namespace k3sim
