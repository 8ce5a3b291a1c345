// Measurements of several files (several runs, machines or programs) as one data set.
//   A kernel and shape that stands in two files with medians within 25 % counts as two rows. Farther apart, both are
//   left out and named, because neither file can tell which is right. When more than 5 % of the rows in common disagree
//   like that (and more than one), the files do not describe the same machine: ConfigError with every such row.
// Source: engine-design section 14 (points 5 and 6); product-spec section 2.
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/measurement_file.h"

namespace k3sim {

struct MergedMeasurements {
  std::vector<Measurement> rows;   // in the order of the files
  std::vector<std::string> notes;  // rows left out, with both medians
};

// names[i] is the file that tables[i] came from.
MergedMeasurements merge_measurements(const std::vector<MeasurementTable>& tables,
                                      const std::vector<std::string>& names);

}  // namespace k3sim
