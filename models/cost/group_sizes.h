// Rows of each expert from what a kernel carries: groups, rows in all and rows of the fullest group. Between them a
// Zipf law c_i ~ i^-a is assumed, with the exponent that gives the fullest group its share; equal groups when unknown.
// Source: own choice; the exponent 1 of calibration's skewed rows is recovered exactly. Valid for >= 1 group.
#pragma once

#include <cstdint>
#include <vector>

namespace k3sim {

// Sums to about `rows`; largest <= rows / groups (or 0) gives equal groups.
std::vector<double> group_sizes(std::int64_t groups, std::int64_t rows, std::int64_t largest);

// Rows of the fullest of `groups` groups under c_i ~ 1 / i.
std::int64_t zipf_largest(std::int64_t groups, std::int64_t rows);

}  // namespace k3sim
