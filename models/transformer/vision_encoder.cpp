// See vision_encoder.h. Source: k3-facts 1.2, 2.8.
#include "models/transformer/vision_encoder.h"

namespace k3sim {

namespace {

constexpr std::int64_t kColours = 3;

struct Product {
  const char* name;
  std::int64_t n, k;
};

std::vector<Product> layer_products(const VisionSpec& v) {
  return {{"vision_qkv", 3 * v.attention_width, v.hidden},
          {"vision_out", v.hidden, v.attention_width},
          {"vision_up", v.ffn, v.hidden},
          {"vision_down", v.hidden, v.ffn}};
}

std::int64_t merged_width(const VisionSpec& v) {
  return v.hidden * kPatchesPerToken;
}

void add_product(std::vector<Kernel>& out, const Product& p, std::int64_t rows, Pass pass) {
  if (pass == Pass::forward) return out.push_back(gemm_kernel(p.name, pass, Dtype::bf16, rows, p.n, p.k));
  for (Pass gradient : {Pass::input_grad, Pass::weight_grad})
    out.push_back(gemm_kernel(p.name, gradient, Dtype::bf16, rows, p.n, p.k));
}

}  // namespace

std::int64_t vision_parameters(const ModelSpec& model, bool with_projector) {
  const VisionSpec& v = model.vision;
  if (!v.present()) return 0;
  std::int64_t layer = 2 * v.hidden;  // norms
  for (const Product& p : layer_products(v)) layer += p.n * p.k;
  const std::int64_t embed = v.patch * v.patch * kColours * v.hidden + v.positions * v.hidden + v.hidden;
  const std::int64_t projector = merged_width(v) * (merged_width(v) + model.hidden);
  return v.layers * layer + embed + (with_projector ? projector : 0);
}

std::vector<Kernel> vision_layer_kernels(const VisionSpec& v, const std::vector<ImagePart>& images, Pass pass) {
  const std::int64_t rows = vision_rows(images);
  std::vector<Kernel> out;
  for (const Product& p : layer_products(v)) add_product(out, p, rows, pass);
  for (const ImagePart& i : images) {
    AttentionShape shape;
    shape.heads = shape.kv_heads = v.heads;
    shape.seq_q = (i.patches + i.ranks - 1) / i.ranks;
    shape.seq_k = i.patches;
    shape.dim_qk = shape.dim_v = v.attention_width / v.heads;
    shape.causal = false;
    out.push_back(attention_kernel("vision_attention", pass, shape));
  }
  // Two norms (4 B per value, backward 6), two residual adds (6), rotation of q and k (8), activation (4 and 6).
  const bool forward = pass == Pass::forward;
  const std::int64_t norm = forward ? 4 : 6, wide = forward ? 4 : 6;
  out.push_back(memory_kernel("vision_norm", pass, MemoryClass::norm, Bytes(rows * v.hidden * 2 * norm)));
  out.push_back(memory_kernel("vision_add", pass, MemoryClass::add, Bytes(rows * v.hidden * 2 * 6)));
  out.push_back(memory_kernel("vision_rope", pass, MemoryClass::activation, Bytes(rows * v.attention_width * 8)));
  out.push_back(memory_kernel("vision_activation", pass, MemoryClass::activation, Bytes(rows * v.ffn * wide)));
  return out;
}

std::vector<Kernel> vision_edge_kernels(const ModelSpec& model, const std::vector<ImagePart>& images, Pass pass) {
  const VisionSpec& v = model.vision;
  const std::int64_t rows = vision_rows(images), tokens = (rows + kPatchesPerToken - 1) / kPatchesPerToken;
  const std::int64_t pixels = v.patch * v.patch * kColours;
  std::vector<Kernel> out;
  // Pixels need no gradient.
  out.push_back(gemm_kernel("vision_patch", pass == Pass::forward ? pass : Pass::weight_grad, Dtype::bf16, rows,
                            v.hidden, pixels));
  add_product(out, {"vision_project_in", merged_width(v), merged_width(v)}, tokens, pass);
  add_product(out, {"vision_project_out", model.hidden, merged_width(v)}, tokens, pass);
  return out;
}

std::int64_t vision_rows(const std::vector<ImagePart>& images) {
  std::int64_t rows = 0;
  for (const ImagePart& i : images) rows += (i.patches + i.ranks - 1) / i.ranks;
  return rows;
}

Bytes vision_gather_bytes(const VisionSpec& v, std::int64_t patches) {
  return Bytes(patches * 2 * v.attention_width * 2);
}

Bytes vision_activation_bytes(const VisionSpec& v) {
  // Inputs of two norms, of q, k, v and of the FFN; q, k, v; attention output; both sides of the activation.
  const std::int64_t values = 4 * v.hidden + 4 * v.attention_width + 2 * v.ffn;
  return Bytes(v.layers * values * 2);
}

}  // namespace k3sim
