// Gains of KDA context parallelism over several GPUs and of splitting chains inside one, from the shipped GPU profiles
// and collective model. Sources: FLA PR 691 (H800; the gated delta rule, whose core is not modelled: its published time
// on one GPU stands for it, everything that context parallelism adds is predicted), attention-gym PR 415 (GB200), cuLA
// README (H200), FlashKDA PR 10 (H20), as in k3-facts 2.6; own run on two H200
// (calibrate/measurements/h200_x2_kcp.csv).
#include <doctest/doctest.h>

#include <cmath>

#include "models/build/comm_cost.h"
#include "models/build/machine_loader.h"
#include "models/cost/gpu_profile.h"
#include "models/transformer/context_parallel.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

struct Setup {
  std::string gpu, kernel;  // fla or flash_kda
  std::int64_t heads = 0, tokens = 0;
  int cp = 1;
  std::string exchange = "all_gather";
  int segments = 1;
};

ModelSpec one_kda_layer(std::int64_t heads) {
  ModelSpec m;
  m.hidden = 2048;
  m.vocab = 1024;
  LayerSpec l;
  l.attention.kind = AttentionKind::kda;
  l.attention.heads = heads;
  l.attention.qk_dim = l.attention.v_dim = 128;
  l.attention.conv_kernel = 4;
  l.attention.decay_rank = 128;
  l.ffn.intermediate = 4096;
  m.layers.assign(1, l);
  return m;
}

struct Parts {
  double core = 0, rest = 0;  // ms: the recurrence itself; pre-pass, exchange and merge
  double sum() const { return core + rest; }
};

// Core attention module of one KDA layer on ranks of one node.
Parts core_parts(const Setup& s, bool backward) {
  Scenario scenario;
  scenario.model = one_kda_layer(s.heads);
  scenario.cluster.gpu = s.gpu;
  scenario.cluster.gpus_per_node = s.cp;
  scenario.parallel.cp = s.cp;
  scenario.parallel.dp = 1;
  scenario.software = "pytorch_eager";  // the sources time the operator alone, beside nothing of a training step
  Machine machine = load_machine(scenario);
  CostOptions options;
  options.kda = s.kernel;
  machine.cost = make_cost_model(load_gpu_profile(s.gpu), options);
  const Placement placement(scenario.parallel, s.cp);
  const CommCoster comm(machine, scenario, placement);
  SplitConfig c;
  c.sequence = s.tokens;
  c.cp = s.cp;
  c.tokens = s.tokens / s.cp;
  c.cp_contiguous = true;
  c.kda_exchange = s.exchange;
  c.kda_segments = s.segments;
  const LayerProgram p = layer_program(scenario.model, 0, c);
  Parts out;
  const auto add = [&](const std::vector<Item>& items) {
    for (const Item& i : items)
      if (i.module == Module::core_attention)
        (!i.is_comm && std::string(i.kernel.name) == "kda_core" ? out.core : out.rest) +=
            1e3 * (i.is_comm ? comm.time(i.comm).time : machine.cost->time(i.kernel).time).seconds();
  };
  add(p.forward);
  if (backward) add(p.backward);
  return out;
}

double core_ms(const Setup& s, bool backward) {
  return core_parts(s, backward).sum();
}

void check_gain(const Setup& without, const Setup& with, bool backward, double published) {
  const double a = core_ms(without, backward), b = core_ms(with, backward);
  MESSAGE(without.gpu << ", " << without.heads << " heads, " << without.tokens << " tokens: " << a << " -> " << b
                      << " ms, " << a / b << " times; published " << published);
  CHECK(a / b > published / 1.2);
  CHECK(a / b < published * 1.2);
}

}  // namespace

TEST_CASE("kcp: two H200 on one document of 32K tokens and 64 heads, own measurement of FLA's operator") {
  const Setup one{"h200_sxm", "fla", 64, 32768};
  Setup two = one;
  two.cp = 2;
  const double forward = core_ms(two, false), both = core_ms(two, true);
  MESSAGE("forward " << forward << " ms of 4.402, with backward " << both << " ms of 18.719");
  CHECK(std::abs(forward / 4.402 - 1) < 0.05);
  CHECK(std::abs(both / 18.719 - 1) < 0.05);
  check_gain(one, two, false, 6.980 / 4.402);
  check_gain(one, two, true, 32.69 / 18.719);
}

TEST_CASE("kcp: four H800 on 32K tokens and 64 heads against one, and head all-to-all (FLA 691)") {
  const Setup one{"h800_sxm", "fla", 64, 32768};
  Setup kcp = one, heads = one;
  kcp.cp = heads.cp = 4;
  heads.exchange = "all_to_all";
  struct Row {
    const Setup& split;
    bool backward;
    double alone, measured;  // ms
  };
  for (const Row& r : {Row{kcp, false, 4.808, 2.001}, Row{kcp, true, 15.560, 5.730}, Row{heads, false, 4.808, 4.114},
                       Row{heads, true, 15.560, 10.591}}) {
    const Parts whole = core_parts(one, r.backward), split = core_parts(r.split, r.backward);
    // Heads travel without the decay, which is one number per head there: q, k, v and output, four rows of KDA's five.
    const double rows = &r.split == &heads ? 0.8 : 1.0;
    const double predicted = r.alone * split.core / whole.core + rows * split.rest;
    MESSAGE(r.split.exchange << (r.backward ? " both " : " forward ") << r.alone << " -> " << predicted
                             << " ms, measured " << r.measured);
    CHECK(predicted < 1.2 * r.measured);
    CHECK(predicted > r.measured / 1.2);
  }
  check_gain(one, kcp, false, 4.808 / 2.001);  // KDA's own core gains as much forward
  CHECK(core_ms(kcp, true) < core_ms(heads, true));
}

TEST_CASE("kcp: two GB200 on a million tokens of four heads (attention-gym 415)") {
  const Setup one{"gb200", "flash_kda", 4, 1 << 20};
  Setup two = one;
  two.cp = 2;
  check_gain(one, two, false, 78.57 / 56.13);
}

TEST_CASE("kcp: chains split inside one GPU (cuLA on H200, FlashKDA PR 10 on H20)") {
  struct Row {
    const char* gpu;
    std::int64_t heads, tokens;
    double published;
  };
  for (const Row& r : {Row{"h200_sxm", 4, 65536, 6.752 / 0.966}, Row{"h200_sxm", 8, 65536, 6.966 / 1.624},
                       Row{"h20", 16, 8192, 1.24 / 0.54}, Row{"h20", 16, 65536, 9.64 / 3.91}}) {
    const Setup one{r.gpu, "flash_kda", r.heads, r.tokens};
    Setup split = one;
    split.segments = 0;  // as many as pay
    check_gain(one, split, false, r.published);
  }
}
