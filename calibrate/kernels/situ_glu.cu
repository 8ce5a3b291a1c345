// SiTU-GLU kernels: one 16-byte vector of outputs per thread and step.
//   s = sigmoid(g), t = tanh(g / 4):  d/dg [4 t s] = (1 - t^2) s + 4 t s (1 - s);  d/du [25 tanh(u / 25)] = 1 - tanh^2
// Source: k3-facts.md section 1.2.
#include "calibrate/kernels/situ_glu.cuh"

namespace k3sim {

namespace {

constexpr float kGateBound = 4.0f, kUpBound = 25.0f;

struct Point {
  float gate, up, dgate, dup;  // the two factors and their derivatives
};

// tanh by one exponential; absolute error below 1e-6, far under the rounding of the result to bf16.
__device__ float fast_tanh(float x) {
  return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
}

__device__ Point evaluate(float g, float u) {
  const float s = __fdividef(1.0f, 1.0f + __expf(-g));
  const float t = fast_tanh(g / kGateBound), w = fast_tanh(u / kUpBound);
  return {kGateBound * t * s, kUpBound * w, (1 - t * t) * s + kGateBound * t * s * (1 - s), 1 - w * w};
}

__global__ void forward_kernel(const bf16* gu, bf16* out, std::size_t vectors, int width8) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const std::size_t row = i / width8, col = i % width8;
    const bf16* base = gu + (row * 2 * width8 + col) * 8;
    const Vec8 g = load8(base), u = load8(base + std::size_t(width8) * 8);
    Vec8 o;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const Point p = evaluate(f32(g.v[j]), f32(u.v[j]));
      o.v[j] = __float2bfloat16(p.gate * p.up);
    }
    store8(out + i * 8, o);
  }
}

__global__ void backward_kernel(const bf16* gu, const bf16* dout, bf16* dgu, std::size_t vectors, int width8) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const std::size_t row = i / width8, col = i % width8, at = (row * 2 * width8 + col) * 8;
    const Vec8 g = load8(gu + at), u = load8(gu + at + std::size_t(width8) * 8), d = load8(dout + i * 8);
    Vec8 dg, du;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const Point p = evaluate(f32(g.v[j]), f32(u.v[j]));
      dg.v[j] = __float2bfloat16(f32(d.v[j]) * p.dgate * p.up);
      du.v[j] = __float2bfloat16(f32(d.v[j]) * p.gate * p.dup);
    }
    store8(dgu + at, dg);
    store8(dgu + at + std::size_t(width8) * 8, du);
  }
}

unsigned grid_for(std::size_t vectors) {
  return unsigned(std::min<std::size_t>((vectors + 255) / 256, 132 * 32));
}

}  // namespace

void situ_glu_forward(const bf16* gu, bf16* out, int rows, int width, cudaStream_t stream) {
  const std::size_t vectors = std::size_t(rows) * std::size_t(width / 8);
  if (vectors > 0) forward_kernel<<<grid_for(vectors), 256, 0, stream>>>(gu, out, vectors, width / 8);
}

void situ_glu_backward(const bf16* gu, const bf16* dout, bf16* dgu, int rows, int width, cudaStream_t stream) {
  const std::size_t vectors = std::size_t(rows) * std::size_t(width / 8);
  if (vectors > 0) backward_kernel<<<grid_for(vectors), 256, 0, stream>>>(gu, dout, dgu, vectors, width / 8);
}

}  // namespace k3sim
