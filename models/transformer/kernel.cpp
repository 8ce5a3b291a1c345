// Kernel constructors: useful FLOPs and least HBM bytes of each kernel family.
//   gemm      2 m n k; operands read once in their dtype, result written in 2 bytes (4 for FP32 operands)
//   attention 2 b h (dim_qk + dim_v) pairs forward, 2.5 x that backward; pairs = seq_q seq_k, halved when causal
//   kda       tokens heads (6 d^2 + 3 C d + C^2), C = 64, forward, 2.5 x backward
// Source: k3-facts sections 1.4 and 4.2; validation/README.md counting rules. Exact for every positive shape.
#include "models/transformer/kernel.h"

#include <algorithm>

#include "sim/base/check.h"

namespace k3sim {
namespace {

constexpr double kAttentionBackwardFlops = 2.5;
constexpr double kKdaChunk = 64;

double as_d(std::int64_t v) {
  return static_cast<double>(v);
}

double result_bytes(Dtype operands) {
  return operands == Dtype::fp32 ? 4.0 : 2.0;
}

// Elements of the two operands and of the result for a forward product C[m,n] = A[m,k] B[k,n] per group.
Bytes product_bytes(Pass pass, Dtype dtype, double a, double b, double c) {
  const double e = bytes_per_element(dtype), out = result_bytes(dtype);
  switch (pass) {
    case Pass::forward:
      return Bytes::ceil(e * (a + b) + out * c);
    case Pass::input_grad:
      return Bytes::ceil(e * (c + b) + out * a);
    case Pass::weight_grad:
      return Bytes::ceil(e * (c + a) + out * b);
  }
  return Bytes{0};
}

// Query-key pairs of one head and sequence; a window of w keys covers w s - w^2 / 2 of the causal square of side s.
double attention_pairs(const AttentionShape& s) {
  const double q = as_d(s.seq_q), k = as_d(s.seq_k);
  const bool windowed = s.window > 0 && s.window < s.seq_k;
  if (!s.causal) return windowed ? q * as_d(s.window) : q * k;
  if (!windowed) return 0.5 * q * k;
  const double w = as_d(s.window);
  return q / k * (w * k - 0.5 * w * w);
}

}  // namespace

Kernel gemm_kernel(const char* name, Pass pass, Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  CS_CHECK(m > 0 && n > 0 && k > 0, "gemm {} has shape {} x {} x {}", name, m, n, k);
  Kernel out;
  out.family = KernelFamily::gemm;
  out.pass = pass;
  out.dtype = dtype;
  out.name = name;
  out.m = m;
  out.n = n;
  out.k = k;
  out.flops = Flops(2.0 * as_d(m) * as_d(n) * as_d(k));
  out.bytes = product_bytes(pass, dtype, as_d(m) * as_d(k), as_d(k) * as_d(n), as_d(m) * as_d(n));
  return out;
}

Kernel grouped_gemm_kernel(const char* name, Pass pass, Dtype dtype, std::int64_t groups, std::int64_t rows,
                           std::int64_t n, std::int64_t k) {
  CS_CHECK(groups > 0, "grouped gemm {} has {} groups", name, groups);
  Kernel out = gemm_kernel(name, pass, dtype, rows, n, k);
  out.family = KernelFamily::grouped_gemm;
  out.groups = groups;
  out.bytes = product_bytes(pass, dtype, as_d(rows) * as_d(k), as_d(groups) * as_d(k) * as_d(n), as_d(rows) * as_d(n));
  return out;
}

Kernel memory_kernel(const char* name, Pass pass, MemoryClass cls, Bytes bytes) {
  Kernel out;
  out.family = KernelFamily::memory;
  out.pass = pass;
  out.memory_class = cls;
  out.name = name;
  out.bytes = bytes;
  return out;
}

Kernel attention_kernel(const char* name, Pass pass, const AttentionShape& s) {
  CS_CHECK(s.heads > 0 && s.kv_heads > 0 && s.seq_q > 0 && s.seq_k > 0, "attention {} has {} heads, {} x {} tokens",
           name, s.heads, s.seq_q, s.seq_k);
  Kernel out;
  out.family = KernelFamily::attention;
  out.pass = pass;
  out.causal = s.causal;
  out.name = name;
  out.batch = s.batch;
  out.heads = s.heads;
  out.kv_heads = s.kv_heads;
  out.seq_q = s.seq_q;
  out.seq_k = s.seq_k;
  out.dim_qk = s.dim_qk;
  out.dim_v = s.dim_v;
  const double scale = pass == Pass::forward ? 1.0 : kAttentionBackwardFlops;
  out.flops = Flops(scale * 2.0 * as_d(s.batch) * as_d(s.heads) * as_d(s.dim_qk + s.dim_v) * attention_pairs(s));
  const std::int64_t q = s.batch * s.seq_q * s.heads * s.dim_qk, o = s.batch * s.seq_q * s.heads * s.dim_v;
  const std::int64_t kv = s.batch * s.seq_k * s.kv_heads * (s.dim_qk + s.dim_v);
  out.bytes = pass == Pass::forward ? Bytes(2 * (q + kv + o)) : Bytes(2 * (2 * q + 2 * kv + 2 * o));
  return out;
}

Kernel kda_kernel(const char* name, Pass pass, std::int64_t sequences, std::int64_t tokens_per_sequence,
                  std::int64_t heads, std::int64_t dim) {
  Kernel out;
  out.family = KernelFamily::kda;
  out.pass = pass;
  out.name = name;
  out.batch = sequences;
  out.heads = heads;
  out.kv_heads = heads;
  out.seq_q = tokens_per_sequence;
  out.seq_k = tokens_per_sequence;
  out.dim_qk = dim;
  out.dim_v = dim;
  const double d = as_d(dim), token_heads = as_d(sequences * tokens_per_sequence * heads);
  const double scale = pass == Pass::forward ? 1.0 : kAttentionBackwardFlops;
  out.flops = Flops(scale * token_heads * (6 * d * d + 3 * kKdaChunk * d + kKdaChunk * kKdaChunk));
  // Compulsory rows: q, k, v, g and output forward; those inputs, the output gradient and four gradients backward.
  out.bytes = Bytes(sequences * tokens_per_sequence * heads * dim * 2 * (pass == Pass::forward ? 5 : 9));
  return out;
}

Kernel kda_prepass_kernel(const char* name, Pass pass, std::int64_t sequences, std::int64_t tokens_per_sequence,
                          std::int64_t heads, std::int64_t dim) {
  Kernel out = kda_kernel(name, pass, sequences, tokens_per_sequence, heads, dim);
  out.family = KernelFamily::kda_prepass;
  const double d = as_d(dim), token_heads = as_d(sequences * tokens_per_sequence * heads);
  out.flops = Flops(token_heads * (6 * d * d + 2 * d * d * d / kKdaChunk));
  out.bytes = Bytes(sequences * tokens_per_sequence * heads * dim * 2 * (pass == Pass::forward ? 3 : 5));
  return out;
}

Kernel kda_prepass_as_core(const char* name, std::int64_t sequences, std::int64_t tokens_per_sequence,
                           std::int64_t heads, std::int64_t dim) {
  constexpr double kShare = 0.3;
  const auto walked = static_cast<std::int64_t>(kShare * as_d(tokens_per_sequence));
  return kda_kernel(name, Pass::forward, sequences, std::max<std::int64_t>(1, walked), heads, dim);
}

const char* to_string(KernelFamily f) {
  switch (f) {
    case KernelFamily::gemm:
      return "gemm";
    case KernelFamily::grouped_gemm:
      return "grouped_gemm";
    case KernelFamily::attention:
      return "attention";
    case KernelFamily::kda:
      return "kda";
    case KernelFamily::kda_prepass:
      return "kda_prepass";
    case KernelFamily::memory:
      return "memory";
    case KernelFamily::topk:
      return "topk";
    case KernelFamily::newton_schulz:
      return "newton_schulz";
    case KernelFamily::optimizer:
      return "optimizer";
  }
  return "?";
}

const char* to_string(Pass p) {
  switch (p) {
    case Pass::forward:
      return "forward";
    case Pass::input_grad:
      return "input_grad";
    case Pass::weight_grad:
      return "weight_grad";
  }
  return "?";
}

const char* to_string(Dtype d) {
  switch (d) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp16:
      return "fp16";
    case Dtype::fp32:
      return "fp32";
    case Dtype::fp8:
      return "fp8";
    case Dtype::fp8_block:
      return "fp8_block";
    case Dtype::mxfp8:
      return "mxfp8";
    case Dtype::nvfp4:
      return "nvfp4";
  }
  return "?";
}

const char* to_string(MemoryClass c) {
  switch (c) {
    case MemoryClass::copy:
      return "copy";
    case MemoryClass::add:
      return "add";
    case MemoryClass::norm:
      return "norm";
    case MemoryClass::activation:
      return "activation";
    case MemoryClass::gather:
      return "gather";
    case MemoryClass::quantize:
      return "quantize";
    case MemoryClass::softmax:
      return "softmax";
    case MemoryClass::conv:
      return "conv";
    case MemoryClass::mix:
      return "mix";
  }
  return "?";
}

}  // namespace k3sim
