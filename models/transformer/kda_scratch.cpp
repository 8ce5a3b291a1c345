// See kda_scratch.h.
// Source: fla/ops/kda/{chunk_fwd,chunk_bwd,chunk_intra,gate}.py, fla/ops/common/chunk_delta_h.py.
#include "models/transformer/kda_scratch.h"

namespace k3sim {
namespace {

constexpr std::int64_t kChunk = 64, kSubChunk = 16;

struct Sizes {
  Bytes half, full, states, matrix, diagonal;
};

Sizes sizes_of(std::int64_t token_heads, std::int64_t d) {
  return {Bytes(2 * token_heads * d), Bytes(4 * token_heads * d), Bytes(2 * token_heads * d * d / kChunk),
          Bytes(4 * token_heads * kChunk), Bytes(4 * token_heads * kSubChunk)};
}

}  // namespace

ScratchScript kda_forward_script(std::int64_t token_heads, std::int64_t d) {
  const Sizes s = sizes_of(token_heads, d);
  ScratchScript f;
  f.make(s.full);  // cumulative gate
  const int diagonal = f.make(s.diagonal);
  for (int i = 0; i < 3; ++i) f.make(s.half);  // w, u, decayed k
  f.drop(diagonal);
  f.make(s.states);
  f.make(s.half);  // corrected values
  f.result();
  return f;
}

ScratchScript kda_backward_script(std::int64_t token_heads, std::int64_t d) {
  constexpr int kQ = 0, kK = 1, kV = 2, kDecay = 3, kBeta = 4;
  const Sizes s = sizes_of(token_heads, d);
  ScratchScript b;
  std::vector<int> rebuilt{b.make(s.full)};                       // cumulative gate
  for (int i = 0; i < 4; ++i) rebuilt.push_back(b.make(s.half));  // w, u, decayed q and k
  rebuilt.push_back(b.make(s.states));
  rebuilt.push_back(b.make(s.half));    // corrected values
  rebuilt.push_back(b.make(s.matrix));  // gradient of Aqk
  const int local_values = b.make(s.half);
  rebuilt.push_back(b.make(s.states));  // gradients of the chunk states
  const int values = b.make(s.half);
  b.drop(local_values);
  const int q = b.make(s.full), k = b.make(s.full);
  b.result(kV);
  const int decay = b.make(s.full);
  rebuilt.push_back(b.make(s.matrix));  // gradient of Akk
  b.drop(values);
  const int q_whole = b.make(s.full), k_whole = b.make(s.full), decay_whole = b.make(s.full);
  for (int slot : {q, k, decay}) b.drop(slot);
  const int summed = b.make(s.full);  // reverse cumulative sum, then the gate's own gradient
  b.drop(decay_whole);
  const int raw = b.make(s.full);
  b.drop(summed);
  for (int slot : rebuilt) b.drop(slot);
  b.result(kQ);
  b.drop(q_whole);
  b.result(kK);
  b.drop(k_whole);
  b.result(kDecay);
  b.drop(raw);
  b.result(kBeta);
  return b;
}

}  // namespace k3sim
