// Published gains of splitting KDA's serial chains inside a GPU, from the shipped GPU profiles
// (context_parallel_test.cpp has those over several GPUs). Sources: cuLA README (H200), FlashKDA PR 10 (H20), as in
// k3-facts 2.6.
#include <doctest/doctest.h>

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

// Core attention module of one KDA layer on ranks of one node.
double core_ms(const Setup& s, bool backward) {
  Scenario scenario;
  scenario.model = one_kda_layer(s.heads);
  scenario.cluster.gpu = s.gpu;
  scenario.cluster.gpus_per_node = s.cp;
  scenario.parallel.cp = s.cp;
  scenario.parallel.dp = 1;
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
  double seconds = 0;
  const auto add = [&](const std::vector<Item>& items) {
    for (const Item& i : items)
      if (i.module == Module::core_attention)
        seconds += (i.is_comm ? comm.time(i.comm).time : machine.cost->time(i.kernel).time).seconds();
  };
  add(p.forward);
  if (backward) add(p.backward);
  return 1e3 * seconds;
}

void check_gain(const Setup& without, const Setup& with, bool backward, double published) {
  const double a = core_ms(without, backward), b = core_ms(with, backward);
  MESSAGE(without.gpu << ", " << without.heads << " heads, " << without.tokens << " tokens: " << a << " -> " << b
                      << " ms, " << a / b << " times; published " << published);
  CHECK(a / b > published / 1.2);
  CHECK(a / b < published * 1.2);
}

}  // namespace

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
