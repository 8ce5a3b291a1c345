// Volumes of KDA context parallelism and shares of causal attention as published (k3-facts 2.6, 4.5); its speed-ups are
// in kcp_speed_up_test.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "models/transformer/context_parallel.h"
#include "models/transformer/layers.h"

using namespace k3sim;

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
