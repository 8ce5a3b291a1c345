// Columns are scaled to unit length first, so that the tolerance has a meaning. Source: nnls.h.
#include "calibrate/fit/nnls.h"

#include <Eigen/QR>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace k3sim {

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kTolerance = 1e-10;

class ActiveSet {
 public:
  ActiveSet(const Matrix& a, const Vector& b)
      : a_(a), b_(b), x_(Vector::Zero(a.cols())), free_(static_cast<std::size_t>(a.cols()), false) {}

  Vector solve() {
    // Each outer step frees one column; three passes over all columns are far more than ever needed.
    for (int step = 0; step < 3 * static_cast<int>(a_.cols()); ++step) {
      const int next = steepest();
      if (next < 0) break;
      free_[static_cast<std::size_t>(next)] = true;
      step_back_into_bounds();
    }
    return x_;
  }

 private:
  int steepest() const {
    const Vector gradient = a_.transpose() * (b_ - a_ * x_);
    int best = -1;
    double value = kTolerance * b_.norm();
    for (int j = 0; j < a_.cols(); ++j) {
      if (free_[static_cast<std::size_t>(j)] || gradient(j) <= value) continue;
      best = j;
      value = gradient(j);
    }
    return best;
  }

  Vector unconstrained() const {
    std::vector<int> columns;
    for (int j = 0; j < a_.cols(); ++j)
      if (free_[static_cast<std::size_t>(j)]) columns.push_back(j);
    Matrix sub(a_.rows(), static_cast<Eigen::Index>(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j) sub.col(static_cast<Eigen::Index>(j)) = a_.col(columns[j]);
    const Vector part = sub.colPivHouseholderQr().solve(b_);
    Vector full = Vector::Zero(a_.cols());
    for (std::size_t j = 0; j < columns.size(); ++j) full(columns[j]) = part(static_cast<Eigen::Index>(j));
    return full;
  }

  void step_back_into_bounds() {
    for (int guard = 0; guard <= static_cast<int>(a_.cols()); ++guard) {
      const Vector target = unconstrained();
      double share = 1.0;
      int blocking = -1;
      for (int j = 0; j < a_.cols(); ++j) {
        if (!free_[static_cast<std::size_t>(j)] || target(j) > 0.0) continue;
        const double limit = x_(j) <= 0.0 ? 0.0 : x_(j) / (x_(j) - target(j));
        if (limit < share || blocking < 0) {
          share = std::min(share, limit);
          blocking = j;
        }
      }
      x_ += share * (target - x_);
      if (blocking < 0) return;
      for (int j = 0; j < a_.cols(); ++j) {
        if (free_[static_cast<std::size_t>(j)] && (j == blocking || x_(j) <= kTolerance)) {
          free_[static_cast<std::size_t>(j)] = false;
          x_(j) = 0.0;
        }
      }
    }
  }

  const Matrix& a_;
  const Vector& b_;
  Vector x_;
  std::vector<bool> free_;
};

}  // namespace

std::vector<double> solve_nnls(const LinearProblem& p) {
  CS_CHECK(p.columns > 0 && p.matrix.size() == p.right.size() * static_cast<std::size_t>(p.columns),
           "nnls: {} values for {} rows of {} columns", p.matrix.size(), p.right.size(), p.columns);
  Matrix a(p.rows(), p.columns);
  Vector b(p.rows());
  for (int i = 0; i < p.rows(); ++i) {
    b(i) = p.right[static_cast<std::size_t>(i)];
    for (int j = 0; j < p.columns; ++j) a(i, j) = p.matrix[static_cast<std::size_t>(i * p.columns + j)];
  }
  Vector length(p.columns);
  for (int j = 0; j < p.columns; ++j) {
    length(j) = a.col(j).norm() > 0.0 ? a.col(j).norm() : 1.0;
    a.col(j) /= length(j);
  }
  const Vector x = ActiveSet(a, b).solve();
  std::vector<double> out(static_cast<std::size_t>(p.columns));
  for (int j = 0; j < p.columns; ++j) out[static_cast<std::size_t>(j)] = x(j) / length(j);
  return out;
}

}  // namespace k3sim
