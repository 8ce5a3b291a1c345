// Tables beside the scores of a cross-validation: every case's error without its fold, how its step time depends on the
// constants (the surrogate of software_fit.h), and the constants fitted on all cases, in the terms of a profile file.
// Source: software_fit.h.
#pragma once

#include <vector>

#include "tools/report/csv.h"
#include "tools/validation/software_fit.h"

namespace k3sim {

// `family`, `source`: predicted over measured - 1 without the case's family and without its whole source.
CsvTable held_out_table(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases,
                        const std::vector<double>& family, const std::vector<double>& source);
CsvTable surrogate_table(const std::vector<CaseSurrogate>& all, const std::vector<Case>& cases);
CsvTable constants_table(const std::vector<CaseSurrogate>& all);

}  // namespace k3sim
