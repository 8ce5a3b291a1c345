// MoonEP on one host, own CUDA over peer memory (plain loads and stores between the GPUs, no multicast): planner, row
// addresses, dispatch, combine, weight prefetch and gradient return.
//   planner: one block on one GPU, from counts[source][expert] (gathered there) to three tables of [ranks][experts]:
//     alloc_before (rows of an expert on lower ranks), source_before (entries of lower sources), group_start.
//   addresses: each rank numbers its entries inside their expert, in flat order, and looks the tables up.
//   dispatch: per token one row crosses to each destination rank; further entries to the same rank are chained through
//     link[] and copied there by an epilogue. combine: a prologue adds the chained rows up, then the source reads one
//     row per destination rank and sums in FP32.
// Source: k3-facts.md sections 3.2-3.6. Requires: at most 64 ranks, top-k at most 32, width a multiple of 8.
#pragma once

#include "calibrate/harness/moonep_reference.h"
#include "calibrate/kernels/vec.cuh"

namespace k3sim {

constexpr int kMoonepMaxRanks = 64;
constexpr int kMoonepBlock = 2048;  // entries numbered by one block

struct MoonepTables {  // on the planner's GPU, each [ranks][experts]
  int *alloc, *alloc_before, *source_before, *group_start;
};

struct MoonepPeers {            // one pointer per rank, into that rank's memory
  bf16* rows[kMoonepMaxRanks];  // receive buffer, [capacity][width]
  int* link[kMoonepMaxRanks];   // [capacity]
};

struct MoonepEntries {  // of one rank
  const int* expert;    // [tokens * topk]
  int* block_counts;    // scratch, [blocks][experts]
  int* code;            // out: dest * capacity + row
};

inline int moonep_blocks(const MoonepShape& s) {
  return (s.entries() + kMoonepBlock - 1) / kMoonepBlock;
}

void moonep_plan_kernel(const MoonepShape& s, const int* counts, const MoonepTables& t, cudaStream_t stream);
void moonep_addresses(const MoonepShape& s, const MoonepTables& t, int rank, const MoonepEntries& e,
                      cudaStream_t stream);
void moonep_dispatch(const MoonepShape& s, const bf16* x, const int* code, const MoonepPeers& peers, int width,
                     cudaStream_t stream);
void moonep_expand(bf16* rows, const int* link, int capacity, int width, cudaStream_t stream);  // dispatch epilogue
void moonep_reduce(bf16* rows, const int* link, int capacity, int width, cudaStream_t stream);  // combine prologue
void moonep_combine(const MoonepShape& s, const int* code, const MoonepPeers& peers, bf16* y, int width,
                    cudaStream_t stream);
// Copies `bytes` through `blocks` blocks of threads (the library uses 32 multiprocessors); either side may be a peer.
void moonep_push(const void* from, void* to, std::size_t bytes, int blocks, cudaStream_t stream);
// grad += replica (read from a peer), then the replica is cleared.
void moonep_return_gradient(float* grad, float* replica, std::size_t n, int blocks, cudaStream_t stream);

}  // namespace k3sim
