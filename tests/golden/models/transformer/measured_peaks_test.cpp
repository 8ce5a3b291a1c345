// Peak memory of whole PyTorch modules on an H200 against kept tensors + workspace + gradients.
// Source: measurements h200_k3_modules.csv (29 Nov 2026): peak_alloc_bytes - base.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/config/model_loader.h"
#include "models/transformer/modules.h"

using namespace k3sim;

namespace {

struct Measured {
  std::vector<std::string> chain;
  std::int64_t tokens, parameters, base, peak;
};

double predicted_peak(const ModelSpec& m, const Measured& row) {
  std::int64_t parameters = 0;
  for (const std::string& name : row.chain) parameters += module_parameters(m, name);
  CHECK(parameters == row.parameters);
  return static_cast<double>(row.base + chain_peak_growth(m, row.chain, row.tokens).count());
}

}  // namespace

TEST_CASE("measured modules: peak memory within 5 percent") {
  const ModelSpec m = load_model("kimi_k3");
  for (const Measured& row :
       {Measured{{"kda"}, 4096, 443740384, 1130775552, 5675911168},
        {{"kda"}, 16384, 443740384, 1659257856, 17174333440},
        {{"mla"}, 4096, 232196096, 707792896, 2737349632},
        {{"mla"}, 16384, 232196096, 1236275200, 7956604416},
        {{"latent_moe"}, 4096, 1108549120, 2460769280, 8472492544},
        {{"dense"}, 4096, 726663168, 1696595968, 4800380928},
        {{"kda_block", "kda_block", "kda_block", "mla_block"}, 4096, 5997671072, 12247763968, 42254230528}}) {
    CAPTURE(row.chain.front());
    CAPTURE(row.tokens);
    const double error = 100 * (predicted_peak(m, row) / static_cast<double>(row.peak) - 1);
    MESSAGE(row.chain.size() << " x " << row.chain.front() << " T=" << row.tokens << " peak error " << error << " %");
    CHECK(std::abs(error) < 5.0);
  }
}

TEST_CASE("measured Llama stage: peak memory of four blocks on one GPU within 1 percent") {
  // Weights, the input, the output gradient and two unused buffers of one activation are there before the step; weight
  // gradients are made in this backward. h200_two_gpu_steps.csv, rows stage_alone.
  const ModelSpec m = load_model("llama3_8b");
  const std::int64_t parameters = 4 * module_parameters(m, "llama_block");
  CHECK(parameters == 4 * 218112000);
  ModuleOptions options;
  options.first_gradients = true;
  for (const auto& [tokens, measured] : {std::pair{2048, 3750103040.0}, {4096, 4985132032.0}}) {
    const std::vector<std::string> chain(4, "llama_block");
    const Bytes growth = chain_peak_growth(m, chain, tokens, options);
    const double base = 2.0 * static_cast<double>(parameters) + 4.0 * 2 * 4096 * tokens;
    const double error = 100 * ((base + growth.as_double()) / measured - 1);
    MESSAGE("llama stage T=" << tokens << " peak error " << error << " %");
    CHECK(std::abs(error) < 1.0);
  }
}

TEST_CASE("measured expert-parallel module: peak memory within 5 percent") {
  // Weights, the input and the output gradient are there before; h200_two_gpu_steps.csv, row ep2_latent_moe.
  const ModelSpec m = load_model("kimi_k3");
  const std::int64_t tokens = 4096;
  const double base = 2.0 * static_cast<double>(module_parameters(m, "ep2_latent_moe")) + 2.0 * 14336 * tokens;
  const double peak = base + chain_peak_growth(m, {"ep2_latent_moe"}, tokens).as_double();
  const double error = 100 * (peak / 8310105600.0 - 1);
  MESSAGE("ep2_latent_moe peak error " << error << " %");
  CHECK(std::abs(error) < 5.0);
}
