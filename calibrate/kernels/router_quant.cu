// Top-k routing and FP8 quantisation.
//   router: per token top 16 of 896 by sigmoid(score) + bias (ties: lowest expert), weights renormalised to sum 1; one
//   warp per token, each lane keeps its 28 experts and the warp takes the maximum 16 times.
//   quantise: each 1x128 block gets scale = max|x| / 448; 3.03 bytes per element.
// Source: k3-facts.md section 1.2 (router), hardware.md section 5.4 (FP8 1x128).
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/random_fill.h"
#include "calibrate/kernels/vec.cuh"

namespace k3sim {

namespace {

constexpr int kExperts = 896, kTopk = 16, kPerLane = kExperts / 32;
constexpr float kFp8Max = 448.0f;

__global__ void router_kernel(const float* scores, const float* bias, int* expert, float* weight, int tokens) {
  const int token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (token >= tokens) return;
  float s[kPerLane], key[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int e = lane + 32 * i;
    s[i] = 1.0f / (1.0f + __expf(-scores[std::size_t(token) * kExperts + e]));
    key[i] = s[i] + bias[e];
  }
  float sum = 0, mine = 0;
  int my_expert = 0;
  for (int k = 0; k < kTopk; ++k) {
    float best = -1e30f, best_s = 0;
    int best_e = kExperts;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if (key[i] > best) best = key[i], best_e = lane + 32 * i, best_s = s[i];
    for (int o = 16; o > 0; o >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best, o), other_s = __shfl_xor_sync(0xffffffffu, best_s, o);
      const int other_e = __shfl_xor_sync(0xffffffffu, best_e, o);
      if (other > best || (other == best && other_e < best_e)) best = other, best_e = other_e, best_s = other_s;
    }
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      if (lane + 32 * i == best_e) key[i] = -1e30f;
    if (lane == k) mine = best_s, my_expert = best_e;
    sum += best_s;
  }
  if (lane < kTopk) {
    expert[std::size_t(token) * kTopk + lane] = my_expert;
    weight[std::size_t(token) * kTopk + lane] = mine / sum;
  }
}

// Sixteen lanes share one block of 128 elements.
__global__ void quantise_kernel(const bf16* x, __nv_fp8_e4m3* q, float* scale, std::size_t vectors) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const Vec8 v = load8(x + 8 * i);
    float top = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) top = fmaxf(top, fabsf(f32(v.v[j])));
    for (int o = 8; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    const float s = fmaxf(top, 1e-12f) / kFp8Max, inverse = 1.0f / s;
    union {
      __nv_fp8_e4m3 f[8];
      uint2 raw;
    } out;
#pragma unroll
    for (int j = 0; j < 8; ++j) out.f[j] = __nv_fp8_e4m3(f32(v.v[j]) * inverse);
    reinterpret_cast<uint2*>(q)[i] = out.raw;
    if (i % 16 == 0) scale[i / 16] = s;
  }
}

void route(const DeviceBuffer<float>& scores, const DeviceBuffer<float>& bias, DeviceBuffer<int>& expert,
           DeviceBuffer<float>& weight, int tokens, cudaStream_t stream) {
  router_kernel<<<(tokens + 7) / 8, 256, 0, stream>>>(scores.get(), bias.get(), expert.get(), weight.get(), tokens);
}

void check_router(Bench& b) {
  const int tokens = 333;
  const auto scores = random_buffer<float>(std::size_t(tokens) * kExperts, b.next_seed());
  const auto bias = random_buffer<float>(kExperts, b.next_seed(), {.scale = 0.1f});
  DeviceBuffer<int> expert(std::size_t(tokens) * kTopk);
  DeviceBuffer<float> weight(expert.size());
  weight.poison();
  route(scores, bias, expert, weight, tokens, b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto z = download_double(scores), add = download_double(bias);
  const auto got_e = expert.download();
  const auto got_w = weight.download();
  std::vector<double> want_w;
  int wrong = 0;
  for (int t = 0; t < tokens; ++t) {
    std::vector<double> s(kExperts);
    for (int e = 0; e < kExperts; ++e) s[e] = 1 / (1 + std::exp(-z[std::size_t(t) * kExperts + e]));
    std::vector<int> order(kExperts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return s[i] + add[i] > s[j] + add[j]; });
    double sum = 0;
    for (int k = 0; k < kTopk; ++k) sum += s[order[k]];
    for (int k = 0; k < kTopk; ++k) {
      wrong += got_e[std::size_t(t) * kTopk + k] != order[k];
      want_w.push_back(s[order[k]] / sum);
    }
  }
  // Keys closer than FP32 resolution may swap neighbours.
  b.verify("router top-16 of 896, experts", double(wrong) / double(got_e.size()), 2e-3);
  b.verify("router top-16 of 896, weights", relative_error(got_w, want_w), 1e-3);
}

void quantise(const DeviceBuffer<bf16>& x, DeviceBuffer<__nv_fp8_e4m3>& q, DeviceBuffer<float>& scale,
              cudaStream_t stream) {
  const std::size_t vectors = x.size() / 8;
  quantise_kernel<<<unsigned(std::min<std::size_t>(vectors / 256, 132 * 64)), 256, 0, stream>>>(x.get(), q.get(),
                                                                                                scale.get(), vectors);
}

void check_quantise(Bench& b) {
  const auto x = random_buffer<bf16>(std::size_t(257) * 4096, b.next_seed());
  DeviceBuffer<__nv_fp8_e4m3> q(x.size());
  DeviceBuffer<float> scale(x.size() / 128);
  q.poison();
  scale.poison();
  quantise(x, q, scale, b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  const auto in = download_double(x);
  const auto s = scale.download();
  const auto raw = q.download();
  std::vector<double> back(in.size()), want_scale(s.size(), 0.0);
  for (std::size_t i = 0; i < in.size(); ++i) {
    back[i] = double(float(raw[i])) * s[i / 128];
    want_scale[i / 128] = std::max(want_scale[i / 128], std::abs(in[i]) / kFp8Max);
  }
  b.verify("fp8_quant_1x128 scales", relative_error(s, want_scale), 1e-6);
  b.verify("fp8_quant_1x128 values", relative_error(back, in), 4e-2);  // three mantissa bits
}

}  // namespace

void run_router_quant(Bench& b) {
  check_router(b);
  check_quantise(b);
  if (b.options().check_only) return;
  for (const int tokens : {1024, 8192, 16384}) {
    const auto scores = random_buffer<float>(std::size_t(tokens) * kExperts, b.next_seed());
    const auto bias = random_buffer<float>(kExperts, b.next_seed(), {.scale = 0.1f});
    DeviceBuffer<int> expert(std::size_t(tokens) * kTopk);
    DeviceBuffer<float> weight(expert.size());
    b.time({"mem", "k3_topk16_of_896", "fwd", "fp32", concat("M=", tokens), 0, double(scores.bytes())},
           [&] { route(scores, bias, expert, weight, tokens, b.stream()); });
  }
  struct Size {
    long long m, d;
  };
  for (const Size s : {Size{8192, 7168}, Size{8192, 12288}, Size{131072, 3584}}) {
    if (b.options().quick && s.d != 7168) continue;
    const auto x = random_buffer<bf16>(std::size_t(s.m * s.d), b.next_seed());
    DeviceBuffer<__nv_fp8_e4m3> q(x.size());
    DeviceBuffer<float> scale(x.size() / 128);
    b.time({"mem", "k3_fp8_quant_1x128", "fwd", "bf16", concat("M=", s.m, ";D=", s.d), 0,
            double(x.bytes() + q.bytes() + scale.bytes())},
           [&] { quantise(x, q, scale, b.stream()); });
  }
}

}  // namespace k3sim
