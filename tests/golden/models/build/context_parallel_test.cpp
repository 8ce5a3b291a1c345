// KDA context parallelism and splitting inside a GPU against published volumes and speed-ups (k3-facts 2.6, 4.5).
#include <doctest/doctest.h>

#include <cmath>

#include "models/transformer/context_parallel.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

// How fast one GPU runs the core: serial chains of 16-token chunks, or a rate per token and head (FLA's chunk kernels).
struct CoreRate {
  double fixed_ms = 0, chunk_us = 0, shared_ns = 0;  // serial chain
  double forward_ns = 0, backward_ns = 0;            // per token and head; used when above 0
  double gather_gbs = 160, hbm_gbs = 2500;
};

double core_ms(const CoreRate& r, const Kernel& k) {
  const double tokens = static_cast<double>(k.seq_q), chains = static_cast<double>(k.batch * k.heads);
  if (r.forward_ns > 0) return tokens * chains * (k.pass == Pass::forward ? r.forward_ns : r.backward_ns) * 1e-6;
  return r.fixed_ms + std::ceil(tokens / 16) * r.chunk_us * 1e-3 + std::ceil(tokens / 16) * chains * r.shared_ns * 1e-6;
}

double item_ms(const CoreRate& r, const Item& i, int ranks) {
  if (i.is_comm) return 0.02 + i.comm.bytes.as_double() * (ranks - 1) / ranks / (r.gather_gbs * 1e6);
  if (i.kernel.family == KernelFamily::kda) return core_ms(r, i.kernel);
  return 0.005 + i.kernel.bytes.as_double() / (r.hbm_gbs * 1e6);
}

struct Setup {
  std::int64_t heads = 0, tokens = 0;
  int cp = 1;
  const char* method = "kcp";
  int segments = 1;
};

// Time of the core attention module of one KDA layer, forward or forward and backward.
double layer_core_ms(const CoreRate& r, const Setup& s, bool backward) {
  ModelSpec m;
  m.hidden = 2048;
  m.vocab = 1024;
  LayerSpec l;
  l.attention.kind = AttentionKind::kda;
  l.attention.heads = s.heads;
  l.attention.qk_dim = l.attention.v_dim = 128;
  l.attention.conv_kernel = 4;
  l.attention.decay_rank = 128;
  l.ffn.intermediate = 4096;
  m.layers.assign(1, l);
  SplitConfig c;
  c.sequence = s.tokens;
  c.cp = s.cp;
  c.tokens = s.tokens / s.cp;
  c.cp_contiguous = true;
  c.cp_method = s.method;
  c.kda_segments = s.segments;
  c.fusion = 1;
  const LayerProgram p = layer_program(m, 0, c);
  double ms = 0;
  for (const Item& i : p.forward)
    if (i.module == Module::core_attention) ms += item_ms(r, i, s.cp);
  if (!backward) return ms;
  for (const Item& i : p.backward)
    if (i.module == Module::core_attention) ms += item_ms(r, i, s.cp);
  return ms;
}

void check_speed_up(double without, double with, double published) {
  MESSAGE("speed-up " << without / with << ", published " << published);
  CHECK(without / with > published / 1.2);
  CHECK(without / with < published * 1.2);
}

}  // namespace

TEST_CASE("kcp: received megabytes per layer and direction by ranks, and over the 69 KDA layers of K3") {
  struct Row {
    int ranks;
    double mb, all_gb;
  };
  CHECK(kcp_state_bytes(96, 128) == Bytes(12'582'912));
  for (const Row& r : {Row{2, 12.6, 0.87}, Row{4, 37.7, 2.60}, Row{8, 88.1, 6.08}, Row{16, 188.7, 13.0},
                       Row{32, 390, 26.9}, Row{128, 1598, 110}}) {
    const double got = kcp_received(KdaExchange::all_gather, r.ranks, 96, 128).as_double();
    CAPTURE(r.ranks);
    CHECK(std::abs(got / 1e6 - r.mb) < 0.004 * r.mb);
    CHECK(std::abs(got * 69 / 1e9 - r.all_gb) < 0.004 * r.all_gb);
  }
  CHECK(kcp_received(KdaExchange::prefix_scan, 128, 96, 128) == kcp_state_bytes(96, 128) * 7);
  CHECK(kcp_received(KdaExchange::prefix_scan, 5, 96, 128) == kcp_state_bytes(96, 128) * 3);
  CHECK(kcp_received(KdaExchange::all_gather, 1, 96, 128) == Bytes(0));
}

TEST_CASE("kcp: four H800 on 32K tokens and 64 heads, forward and with backward, against head all-to-all") {
  const CoreRate fla{.forward_ns = 4.808e6 / (32768 * 64), .backward_ns = 10.752e6 / (32768 * 64)};
  const Setup one{64, 32768}, kcp{64, 32768, 4}, heads{64, 32768, 4, "all_to_all"};
  check_speed_up(layer_core_ms(fla, one, false), layer_core_ms(fla, kcp, false), 4.808 / 2.001);
  check_speed_up(layer_core_ms(fla, one, true), layer_core_ms(fla, kcp, true), 15.560 / 5.730);
  check_speed_up(layer_core_ms(fla, one, false), layer_core_ms(fla, heads, false), 4.808 / 4.114);
  check_speed_up(layer_core_ms(fla, one, true), layer_core_ms(fla, heads, true), 15.560 / 10.591);
}

TEST_CASE("kcp: two GB200 on a million tokens of four heads") {
  const CoreRate gb200{.fixed_ms = 0.05, .chunk_us = 1.38, .shared_ns = 5.1, .gather_gbs = 600, .hbm_gbs = 6000};
  check_speed_up(layer_core_ms(gb200, {4, 1 << 20}, false), layer_core_ms(gb200, {4, 1 << 20, 2}, false),
                 78.57 / 56.13);
}

TEST_CASE("kcp: splitting the serial chain inside one GPU") {
  const CoreRate h200{.fixed_ms = 0.019, .chunk_us = 1.557, .shared_ns = 13.3};
  const CoreRate h20{.fixed_ms = 0.053, .chunk_us = 2.06, .shared_ns = 15.7};
  const auto gain = [](const CoreRate& r, std::int64_t heads, std::int64_t tokens) {
    return std::pair(layer_core_ms(r, {heads, tokens}, false), layer_core_ms(r, {heads, tokens, 1, "kcp", 0}, false));
  };
  const auto check = [&](const CoreRate& r, std::int64_t heads, std::int64_t tokens, double published) {
    const auto [without, with] = gain(r, heads, tokens);
    check_speed_up(without, with, published);
  };
  check(h200, 4, 65536, 6.752 / 0.966);
  check(h200, 8, 65536, 6.966 / 1.624);
  check(h20, 16, 8192, 1.24 / 0.54);
  check(h20, 16, 65536, 9.64 / 3.91);
  CHECK(kda_segments(96) == 1);  // K3's 96 heads fill the GPU by themselves
}

TEST_CASE("context parallelism: contiguous slices load the last rank, zigzag slices do not") {
  const std::vector<double> contiguous = causal_shares({1 << 20}, 8, true), zigzag = causal_shares({1 << 20}, 8, false);
  for (std::size_t r = 0; r < 8; ++r) {
    CHECK(contiguous[r] == doctest::Approx((2.0 * static_cast<double>(r) + 1) / 8).epsilon(1e-9));
    CHECK(zigzag[r] == doctest::Approx(1.0).epsilon(1e-9));
  }
  // Documents no longer than a slice make contiguous slices even.
  for (double share : causal_shares(std::vector<std::int64_t>(8, 4096), 8, true)) CHECK(share == doctest::Approx(1.0));
  CHECK(attended_keys({65536}, 1, true) == 65536);
  CHECK(attended_keys({65536}, 8, true) == 2 * 65536 - 8192);
  CHECK(mean_document({100, 300}) == doctest::Approx(250.0));
}

TEST_CASE("context parallelism: MLA moves 1,152 bytes per token as latents and 61,440 expanded") {
  ModelSpec m;
  m.hidden = 7168;
  m.vocab = 1024;
  LayerSpec l;
  l.attention.kind = AttentionKind::mla;
  l.attention.heads = 96;
  l.attention.qk_dim = 192;
  l.attention.v_dim = 128;
  l.attention.kv_lora_rank = 512;
  l.attention.rope_dim = 64;
  l.attention.q_lora_rank = 1536;
  l.ffn.intermediate = 4096;
  m.layers.assign(1, l);
  const auto forward_bytes = [&](const char* method) {
    SplitConfig c;
    c.sequence = 65536;
    c.cp = 8;
    c.tokens = 8192;
    c.cp_method = method;
    Bytes sum;
    for (const Item& i : layer_program(m, 0, c).forward)
      if (i.is_comm && i.lane == Lane::cp_comm) sum += i.comm.bytes;
    return sum.count() / 65536;
  };
  CHECK(forward_bytes("auto") == 1152);
  CHECK(forward_bytes("all_gather") == 61440);
  CHECK(forward_bytes("ring") == 61440);
  CHECK(forward_bytes("all_to_all") ==
        96 * (192 * 2 + 128 * 2) * 2 / 8);  // each token leaves once, its output comes back
}
