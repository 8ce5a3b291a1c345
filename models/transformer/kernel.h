// One GPU kernel (or a group of identical launches) as the cost model sees it: family, pass, data type, shape, useful
// floating-point operations and least HBM traffic. Shapes are per rank and per micro-batch.
//
// GEMM: forward C[m,n] = A[m,k] B[k,n]; m is tokens. For input_grad and weight_grad the same m, n, k of the FORWARD
// product are kept and `pass` tells the operand roles (dgrad: [m,n]x[n,k]; wgrad: [k,m]x[m,n]), as in calibration
// files. Attention: flops count the causal half when `causal`. Source: k3-facts sections 1.4 and 4; hardware notes
// section 5.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace k3sim {

enum class KernelFamily : std::uint8_t {
  gemm,           // dense matrix product: m, n, k
  grouped_gemm,   // routed experts: groups local experts, m = rows in all groups, n, k per expert
  attention,      // softmax attention core: batch, heads, kv_heads, seq_q, seq_k, dim_qk, dim_v
  kda,            // chunked gated delta rule core: batch (sequences), heads, seq_q (tokens per sequence), dim_qk, dim_v
  kda_prepass,    // walk of a slice to (state, transition) for context parallelism: shapes as kda
  memory,         // bandwidth-bound: bytes (and memory_class)
  topk,           // routing selection: m tokens of n experts, k chosen
  newton_schulz,  // Muon orthogonalisation: batch matrices of m x n, five quintic iterations
  optimizer,      // AdamW/Muon element-wise update: m parameters
};
enum class Pass : std::uint8_t { forward, input_grad, weight_grad };
enum class Dtype : std::uint8_t { bf16, fp16, fp32, fp8, fp8_block, mxfp8, nvfp4 };
// Which measured curve a bandwidth-bound kernel follows.
enum class MemoryClass : std::uint8_t { copy, add, norm, activation, gather, quantize, softmax, conv, mix };

constexpr int kMemoryClasses = 9;
constexpr int kKernelFamilies = 9;
constexpr double bytes_per_element(Dtype d) {
  return d == Dtype::fp32 ? 4.0 : d == Dtype::nvfp4 ? 0.5625 : (d == Dtype::bf16 || d == Dtype::fp16) ? 2.0 : 1.0;
}
constexpr bool is_fp8(Dtype d) {
  return d == Dtype::fp8 || d == Dtype::fp8_block || d == Dtype::mxfp8;
}

struct Kernel {
  KernelFamily family = KernelFamily::memory;
  Pass pass = Pass::forward;
  Dtype dtype = Dtype::bf16;
  MemoryClass memory_class = MemoryClass::copy;
  bool causal = false;
  const char* name = "";  // static string such as "qkv_proj"; appears in traces and tables
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t groups = 1;
  std::int64_t largest_group = 0;  // rows of the fullest group; 0: all groups equal
  // Rows of every group in their true proportions (scaled to m), when routing is known; not owned.
  const std::vector<double>* group_rows = nullptr;
  bool choose_tile = false;  // grouped: launch parameters picked from the group sizes (K3) instead of by a fixed rule
  bool routed = false;       // its rows follow the routing of a MoE layer
  int accumulated = 0;       // weight gradient: bytes per value of the gradient in memory that the result is added to
  std::int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, dim_qk = 0, dim_v = 0;
  Flops flops{0};             // useful work in the matrix units
  Bytes bytes{0};             // least HBM traffic: inputs read once, outputs written once
  std::int32_t launches = 1;  // kernels the host issues for this entry
};

// Constructors that fill flops and bytes consistently. `e` is bytes per element of operands; outputs of FP8 GEMMs and
// weight gradients are 2 and `grad_bytes` respectively.
Kernel gemm_kernel(const char* name, Pass pass, Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k);
Kernel grouped_gemm_kernel(const char* name, Pass pass, Dtype dtype, std::int64_t groups, std::int64_t rows,
                           std::int64_t n, std::int64_t k);
Kernel memory_kernel(const char* name, Pass pass, MemoryClass cls, Bytes bytes);

struct AttentionShape {
  std::int64_t batch = 1, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, dim_qk = 0, dim_v = 0;
  bool causal = true;
  std::int64_t window = 0;
};
// Forward: 2 b h (dim_qk + dim_v) * pairs; backward (Pass::input_grad): 2.5 x forward FLOPs.
Kernel attention_kernel(const char* name, Pass pass, const AttentionShape& shape);
// KDA core, chunk 64 report formula per token and head: 6 d^2 + 3 C d + C^2 forward; backward 2.5 x
// (k3-facts 4.2, 4.7).
Kernel kda_kernel(const char* name, Pass pass, std::int64_t sequences, std::int64_t tokens_per_sequence,
                  std::int64_t heads, std::int64_t dim);

// Pre-pass of KDA context parallelism over the same tokens: state 4 d^2 and transition 2 d^2 + 2 d^3 / C FLOPs per
// token and head, either direction; reads k, w, u (backward q, k, w, do, dv) (k3-facts 2.6).
Kernel kda_prepass_kernel(const char* name, Pass pass, std::int64_t sequences, std::int64_t tokens_per_sequence,
                          std::int64_t heads, std::int64_t dim);

// A pre-pass as the forward core over a share of the tokens, in either direction: for libraries that split chains
// inside a GPU, and where no pre-pass was timed. The share is its chunk step over the core's, 0.3 (FlashKDA PR 10: 0.24
// to 0.34; Triton on H200, 64 heads: 0.23 forward, 0.28 backward).
Kernel kda_prepass_as_core(const char* name, std::int64_t sequences, std::int64_t tokens_per_sequence,
                           std::int64_t heads, std::int64_t dim);

const char* to_string(KernelFamily f);
const char* to_string(Pass p);
const char* to_string(Dtype d);
const char* to_string(MemoryClass c);

}  // namespace k3sim
