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
  for (const Measured& row : {Measured{{"kda"}, 4096, 443740384, 1130775552, 5675911168},
                              {{"kda"}, 16384, 443740384, 1659257856, 17174333440},
                              {{"mla"}, 4096, 232196096, 707792896, 2737349632},
                              {{"mla"}, 16384, 232196096, 1236275200, 7956604416},
                              {{"latent_moe"}, 4096, 1108549120, 2460769280, 8472492544},
                              {{"dense"}, 4096, 726663168, 1696595968, 4800380928},
                              {{"kda_block", "kda_block", "kda_block", "mla_block"}, 4096, 5997671072, 12247763968,
                               42254230528}}) {
    CAPTURE(row.chain.front());
    CAPTURE(row.tokens);
    const double error = 100 * (predicted_peak(m, row) / static_cast<double>(row.peak) - 1);
    MESSAGE(row.chain.size() << " x " << row.chain.front() << " T=" << row.tokens << " peak error " << error << " %");
    CHECK(std::abs(error) < 5.0);
  }
}
