// Quantisation-aware training and the switches of context parallelism, on single layers.
#include <doctest/doctest.h>

#include <cmath>

#include "models/config/model_loader.h"
#include "models/transformer/context_parallel.h"
#include "models/transformer/layers.h"

using namespace k3sim;

namespace {

SplitConfig k3_split(int cp = 1) {
  SplitConfig s;
  s.sequence = 65536;
  s.cp = cp;
  s.tokens = 8192;
  if (cp == 1) s.sequence = 8192;
  s.ep = 64;
  s.dispatcher = "moonep";
  s.cp_contiguous = true;
  s.fusion = 2;
  return s;
}

double bytes_of(const std::vector<Item>& items, const std::string& name) {
  double sum = 0;
  for (const Item& i : items)
    if (!i.is_comm && name == i.kernel.name) sum += i.kernel.bytes.as_double();
  return sum;
}

Bytes saved(const LayerProgram& p, const std::string& name) {
  for (const SavedTensor& t : p.saved)
    if (t.name == name) return t.bytes;
  return Bytes(0);
}

double comm_bytes(const LayerProgram& p, const std::string& part) {
  double sum = 0;
  for (const Item& i : p.forward)
    if (i.is_comm && i.lane == Lane::cp_comm && std::string(i.name).find(part) != std::string::npos)
      sum += i.comm.bytes.as_double();
  return sum;
}

constexpr std::size_t kKdaLayer = 5, kMlaLayer = 7;

}  // namespace

TEST_CASE("qat: routed experts round weights and inputs, keep MXFP8 inputs, and touch nothing else") {
  const ModelSpec m = load_model("kimi_k3");
  SplitConfig s = k3_split();
  const LayerProgram plain = layer_program(m, kKdaLayer, s);
  s.qat = true;
  const LayerProgram qat = layer_program(m, kKdaLayer, s);
  const double weights = 14.0 * 3 * 3584 * 3072, rows = 8192.0 * 16;
  CHECK(bytes_of(qat.forward, "qat_round_weight") == doctest::Approx(4 * weights));
  CHECK(bytes_of(qat.backward, "qat_round_weight") == doctest::Approx(4 * weights));
  CHECK(bytes_of(qat.forward, "qat_round_input") == doctest::Approx(4 * rows * (3584 + 3072)));
  CHECK(bytes_of(plain.forward, "qat_round_weight") == 0);
  for (const char* name : {"moe.dispatched", "moe.expert_act"}) {
    CAPTURE(name);
    CHECK(saved(qat, name) / saved(plain, name) == doctest::Approx((1 + 1.0 / 32) / 2).epsilon(1e-6));
  }
  for (const SavedTensor& t : plain.saved)
    if (t.name != "moe.dispatched" && t.name != "moe.expert_act") CHECK(saved(qat, t.name) == saved(plain, t.name));
  double flops = 0, flops_qat = 0;
  for (const Item& i : plain.forward) flops += i.is_comm ? 0 : i.kernel.flops.value();
  for (const Item& i : qat.forward) flops_qat += i.is_comm ? 0 : i.kernel.flops.value();
  CHECK(flops == flops_qat);
  CHECK(qat.workspace >= plain.workspace);
  // A dense layer has no routed experts.
  s.qat = false;
  const std::size_t dense = 0, items = layer_program(m, dense, s).forward.size();
  s.qat = true;
  CHECK(layer_program(m, dense, s).forward.size() == items);
}

TEST_CASE("switches: KDA and MLA exchanges are chosen apart and beat cp_method") {
  const ModelSpec m = load_model("kimi_k3");
  SplitConfig s = k3_split(8);
  s.cp_method = "all_to_all";
  s.kda_exchange = "all_gather";
  s.mla_exchange = "latent";
  const LayerProgram kda = layer_program(m, kKdaLayer, s), mla = layer_program(m, kMlaLayer, s);
  CHECK(comm_bytes(kda, "kcp_state") == doctest::Approx(8 * 12'582'912.0));
  CHECK(comm_bytes(kda, "kda_heads") == 0);
  CHECK(comm_bytes(mla, "latent") == doctest::Approx(65536.0 * 1152));
  s.kda_exchange = "prefix_scan";
  CHECK(comm_bytes(layer_program(m, kKdaLayer, s), "kcp_state") ==
        doctest::Approx(3 * 12'582'912.0 * 8 / 7).epsilon(1e-6));
  s.kda_exchange = "all_to_all";
  const LayerProgram heads = layer_program(m, kKdaLayer, s);
  CHECK(comm_bytes(heads, "kcp_state") == 0);
  CHECK(comm_bytes(heads, "kda_heads") > 0);
  for (const auto& [word, per_token] : std::initializer_list<std::pair<const char*, double>>{
           {"expanded", 61440}, {"ring", 61440}, {"all_to_all", 15360}}) {
    s.mla_exchange = word;
    CAPTURE(word);
    CHECK(comm_bytes(layer_program(m, kMlaLayer, s), "") == doctest::Approx(65536 * per_token));
    CHECK(comm_bytes(layer_program(m, kKdaLayer, s), "kda_heads") == comm_bytes(heads, "kda_heads"));
  }
}

TEST_CASE("switches: zigzag evens MLA but gives KDA two pieces per rank; documents shorten both") {
  const ModelSpec m = load_model("kimi_k3");
  const auto attention_flops = [](const LayerProgram& p, KernelFamily family) {
    double sum = 0;
    for (const Item& i : p.forward)
      if (!i.is_comm && i.kernel.family == family) sum += i.kernel.flops.value();
    return sum;
  };
  SplitConfig contiguous = k3_split(8), zigzag = k3_split(8);
  zigzag.cp_contiguous = false;
  contiguous.attended = attended_keys({65536}, 8, true);
  const LayerProgram kda = layer_program(m, kKdaLayer, contiguous), kda_zigzag = layer_program(m, kKdaLayer, zigzag);
  CHECK(comm_bytes(kda_zigzag, "kcp_state") == doctest::Approx(2 * comm_bytes(kda, "kcp_state")));
  const double ends = attention_flops(layer_program(m, kMlaLayer, contiguous), KernelFamily::attention);
  const double even = attention_flops(layer_program(m, kMlaLayer, zigzag), KernelFamily::attention);
  CHECK(ends / even == doctest::Approx(15.0 / 8).epsilon(0.01));  // the last of eight slices
  // Eight documents of one slice each: nobody continues, and contiguous slices are even.
  SplitConfig packed = contiguous;
  packed.documents = 8;
  packed.longest_document = 8192;
  packed.attended = attended_keys(std::vector<std::int64_t>(8, 8192), 8, true);
  CHECK(packed.attended == 8192);
  const double short_ones = attention_flops(layer_program(m, kMlaLayer, packed), KernelFamily::attention);
  CHECK(short_ones / ends == doctest::Approx(8192.0 / (2 * 65536 - 8192)).epsilon(0.01));
}
