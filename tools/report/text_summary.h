// The terminal answer of `k3sim run`: first line the result with its error bar, then where the time and the memory go.
// At most 40 lines; bars only on a terminal. Source: product-spec section 2; engine-design section 18.
#pragma once

#include <string>

#include "models/build/step.h"

namespace k3sim {

std::string text_summary(const Scenario& scenario, const StepPrediction& prediction, bool colour);

}  // namespace k3sim
