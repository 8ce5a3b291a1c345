// What runs beside what: shared experts on the side lane, context-parallel exchanges, dispatch and combine volumes.
// Source: k3-facts sections 2.2, 2.6, 2.7, 3.6.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/config/model_loader.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

std::size_t find(const std::vector<Item>& list, const std::string& name, Pass pass = Pass::forward) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name && (list[i].is_comm || list[i].kernel.pass == pass)) return i;
  }
  FAIL("no item " << name);
  return 0;
}

// Everything that must have finished before item i: data edges and lane order, transitively.
std::vector<bool> before(const std::vector<Item>& list, std::size_t i) {
  std::vector<bool> seen(list.size(), false);
  std::vector<std::size_t> open = {i};
  auto push = [&](std::size_t j) {
    if (!seen[j]) {
      seen[j] = true;
      open.push_back(j);
    }
  };
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    if (list[at].after.empty() && at > 0) push(at - 1);
    for (std::uint16_t a : list[at].after) push(a);
    for (std::size_t j = at; j-- > 0;) {
      if (list[j].lane == list[at].lane) {
        push(j);
        break;
      }
    }
  }
  return seen;
}

bool waits(const std::vector<Item>& list, const std::string& item, const std::string& first,
           Pass pass = Pass::forward) {
  return before(list, find(list, item, pass))[find(list, first, pass)];
}

SplitConfig expert_split(const char* dispatcher) {
  SplitConfig split;
  split.tokens = split.sequence = 8192;
  split.ep = 64;
  split.dispatcher = dispatcher;
  return split;
}

}  // namespace

TEST_CASE("shared experts: SE1 beside dispatch, SE2 beside combine, mirrored in backward") {
  for (const char* model : {"kimi_k3", "deepseek_v3"}) {
    CAPTURE(model);
    const LayerProgram p = layer_program(load_model(model), 5, expert_split("moonep"));
    CHECK(p.forward[find(p.forward, "shared_up")].lane == Lane::side);
    CHECK_FALSE(waits(p.forward, "shared_up", "ep_dispatch"));
    CHECK_FALSE(waits(p.forward, "ep_dispatch", "shared_up"));
    CHECK_FALSE(waits(p.forward, "expert_up", "shared_up"));
    CHECK(waits(p.forward, "shared_down", "expert_down"));
    CHECK_FALSE(waits(p.forward, "shared_down", "ep_combine"));
    CHECK(waits(p.forward, "shared_add", "shared_down"));
    CHECK(waits(p.forward, "shared_add", "ep_combine"));
    const Pass grad = Pass::input_grad;
    CHECK_FALSE(waits(p.backward, "ep_combine_grad", "shared_down", grad));
    CHECK_FALSE(waits(p.backward, "shared_down", "ep_combine_grad", grad));
    CHECK(waits(p.backward, "expert_down", "ep_combine_grad", grad));
    CHECK(waits(p.backward, "shared_up", "expert_up", grad));
    CHECK_FALSE(waits(p.backward, "shared_up", "ep_dispatch_grad", grad));
    CHECK_FALSE(waits(p.backward, "ep_dispatch_grad", "shared_up", grad));
  }
}

TEST_CASE("dispatch: latent width halves the row, top-16 doubles the rows: K3 sends what K2 sends") {
  const LayerProgram k3 = layer_program(load_model("kimi_k3"), 5, expert_split("deepep"));
  const LayerProgram k2 = layer_program(load_model("kimi_k2"), 5, expert_split("deepep"));
  const CommOp& a = k3.forward[find(k3.forward, "ep_dispatch")].comm;
  const CommOp& b = k2.forward[find(k2.forward, "ep_dispatch")].comm;
  CHECK(a.bytes == b.bytes);
  CHECK(a.bytes.count() == 8192LL * 16 * 7168);
  CHECK(a.row_bytes == 7168);
  CHECK(a.kind == CommKind::dispatch);
  CHECK(k3.backward[find(k3.backward, "ep_combine_grad")].comm.kind == CommKind::dispatch);
}

TEST_CASE("context parallelism: KDA exchanges 12.58 MB of state per rank whatever the tokens, and conv tails") {
  const ModelSpec m = load_model("kimi_k3");
  for (std::int64_t tokens : {2048, 8192}) {
    SplitConfig split;
    split.cp = 8;
    split.cp_contiguous = true;
    split.tokens = tokens;
    split.sequence = tokens * split.cp;
    const LayerProgram p = layer_program(m, 1, split);
    CHECK(p.forward[find(p.forward, "kcp_state_gather")].comm.bytes.count() == 8 * 12582912LL);
    CHECK(p.backward[find(p.backward, "kcp_state_grad_gather")].comm.bytes.count() == 8 * 12582912LL);
    std::int64_t tails = 0;
    for (const Item& i : p.forward) tails += std::string(i.name) == "kcp_conv_tail" ? i.comm.bytes.count() : 0;
    CHECK(tails == 8 * 3 * 36864 * 2);
    const double prepass = p.forward[find(p.forward, "kcp_prepass")].kernel.flops.value();
    CHECK(prepass / static_cast<double>(tokens * 96) == doctest::Approx(65536 + 98304));
  }
}

TEST_CASE("context parallelism: MLA gathers 1,152 bytes of latent per token, GQA passes keys and values around") {
  SplitConfig split;
  split.cp = 4;
  split.tokens = 8192;
  split.sequence = 32768;
  const LayerProgram mla = layer_program(load_model("kimi_k3"), 3, split);
  CHECK(mla.forward[find(mla.forward, "cp_gather_latent")].comm.bytes.count() == 32768 * 1152);
  const LayerProgram gqa = layer_program(load_model("llama3_8b"), 3, split);
  const std::size_t ring = find(gqa.forward, "cp_ring_kv");
  CHECK(gqa.forward[ring].comm.bytes.count() == 32768 * 2 * 8 * 128 * 2);
  CHECK_FALSE(waits(gqa.forward, "attention", "cp_ring_kv"));
  CHECK(waits(gqa.forward, "attn_out_proj", "cp_ring_kv"));
}

TEST_CASE(
    "tensor parallelism: two gathers and two scatters per pass with sequence parallelism, re-gathers beside dgrad") {
  SplitConfig split;
  split.tokens = split.sequence = 4096;
  split.tp = 8;
  auto count = [](const std::vector<Item>& list, CommKind kind) {
    return std::count_if(list.begin(), list.end(),
                         [kind](const Item& i) { return i.is_comm && i.lane == Lane::tp_comm && i.comm.kind == kind; });
  };
  const ModelSpec m = load_model("llama3_70b");
  LayerProgram p = layer_program(m, 1, split);
  CHECK(count(p.forward, CommKind::all_reduce) == 2);
  CHECK(count(p.backward, CommKind::all_reduce) == 2);
  split.sequence_parallel = true;
  p = layer_program(m, 1, split);
  CHECK(count(p.forward, CommKind::all_gather) == 2);
  CHECK(count(p.forward, CommKind::reduce_scatter) == 2);
  CHECK(count(p.backward, CommKind::reduce_scatter) == 2);
  CHECK(count(p.backward, CommKind::all_gather) == 4);  // two mirror the scatters, two rebuild inputs for wgrad
  CHECK(p.forward[find(p.forward, "tp_all_gather")].comm.bytes.count() == 4096 * 8192 * 2);
  const std::size_t dgrad = find(p.backward, "qkv_proj", Pass::input_grad);
  REQUIRE(std::string(p.backward[dgrad - 1].name) == "tp_regather");
  CHECK_FALSE(before(p.backward, dgrad)[dgrad - 1]);
  CHECK(before(p.backward, find(p.backward, "qkv_proj", Pass::weight_grad))[dgrad - 1]);
}

TEST_CASE("embedding, head and MTP: vocabulary split, loss exchange, one more layer") {
  const ModelSpec m = load_model("deepseek_v3");
  SplitConfig split;
  split.tokens = split.sequence = 4096;
  split.tp = 4;
  split.sequence_parallel = true;
  const LayerProgram head = head_program(m, split);
  CHECK(head.forward[find(head.forward, "lm_head")].kernel.n == 129280 / 4);
  CHECK(head.forward[find(head.forward, "tp_loss_reduce")].comm.bytes.count() == 12 * 4096);
  CHECK(embedding_program(m, split).boundary.count() == 4096 / 4 * 7168 * 2);
  split.tp = 1;
  split.sequence_parallel = false;
  const LayerProgram mtp = mtp_program(m, split);
  CHECK(mtp.forward[find(mtp.forward, "mtp_proj")].kernel.k == 2 * 7168);
  CHECK(mtp.forward[find(mtp.forward, "router")].kernel.n == 256);
  CHECK(mtp.forward[find(mtp.forward, "lm_head")].kernel.n == 129280);
}
