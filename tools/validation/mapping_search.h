// Layouts of a case whose source prints only the best of a grid search over tp, pp, dp and the micro-batch size: the
// same search is made here, and the fastest layout that fits is the prediction. Tensor parallelism stays within a node,
// every micro-batch count fills the pipeline, and ZeRO-1 is assumed, without which the one layout that is printed
// (controllable memory, 1F1B) would not fit. Source: arXiv:2405.15362 section 5 (grid search).
#pragma once

#include <vector>

#include "tools/validation/case_file.h"

namespace k3sim {

bool is_grid_search(const Case& c);
// The case once per layout worth trying: those whose parameters, gradients and optimizer states leave room. Empty:
// none.
std::vector<Case> grid_layouts(const Case& c);

}  // namespace k3sim
