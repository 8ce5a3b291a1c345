// Non-negative least squares: min |A x - b| with x >= 0, by the active-set method of Lawson and Hanson.
// Source: C. Lawson, R. Hanson, Solving Least Squares Problems, chapter 23 (algorithm NNLS). Small dense problems;
// Eigen 3.4 has no such solver. Deterministic: ties go to the lower column.
#pragma once

#include <vector>

namespace k3sim {

struct LinearProblem {
  int columns = 0;
  std::vector<double> matrix;  // row by row
  std::vector<double> right;   // one per row
  int rows() const { return static_cast<int>(right.size()); }
};

std::vector<double> solve_nnls(const LinearProblem& problem);

}  // namespace k3sim
