// Names of the provenance tiers. Source: cost_model.h.
#include "models/cost/cost_model.h"

#include <array>

namespace k3sim {

const char* to_string(Provenance p) {
  constexpr std::array<const char*, 7> kNames{"measured",  "fitted",  "boundary", "borrowed",
                                              "datasheet", "assumed", "missing"};
  return kNames[static_cast<std::size_t>(p)];
}

}  // namespace k3sim
