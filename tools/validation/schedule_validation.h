// How well schedules are compared: the speed of every published run relative to 1F1B of the same model on the same
// GPUs,
//   speed = step time of 1F1B / step time of the run        measured and predicted, error of their ratio
// its memory, and DeepSeek-V3's DualPipe: the overlapped pair of 4-layer chunks of the public trace, and the step of
// 2,048 GPUs with its published parts. Cases: the groups zero-bubble, vocabulary-parallelism, controllable-memory-pp
// and deepseek-v3 of cases.yaml; runs whose 1F1B counterpart is not published are skipped with that reason. Source:
// validation README (trace: 129 ms per pair; ISCA 25 Table 4), issue 5.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

// Rows of kind "speed" (metric speed_vs_1f1b), "memory", "pair" (ms) and "step" (s); `reason` of a compared row names
// the 1F1B run.
std::vector<ValidationRow> validate_schedules(const std::vector<Case>& cases, int threads);

// One part of the published DualPipe step: 1F, 1B, 1W, 1F1B, bubble, optimizer; seconds, mean over pipeline ranks.
struct StepPart {
  const char* name;
  double measured_s, predicted_s;
};
std::vector<StepPart> dualpipe_parts(const std::vector<Case>& cases);

}  // namespace k3sim
