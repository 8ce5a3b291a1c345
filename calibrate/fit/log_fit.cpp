// Source: log_fit.h.
#include "calibrate/fit/log_fit.h"

#include <Eigen/Cholesky>
#include <cmath>

#include "sim/base/check.h"

namespace k3sim {

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kScale = 0.05;
constexpr double kStep = 1e-4;
constexpr int kMaxSteps = 60;
constexpr double kRange = 3.0;  // parameters stay within e^-3 ... e^3 of their start

double soft(double r) {
  return 2.0 * kScale * kScale * (std::sqrt(1.0 + r * r / (kScale * kScale)) - 1.0);
}
double soft_weight(double r) {
  return 1.0 / std::sqrt(1.0 + r * r / (kScale * kScale));
}

class Fit {
 public:
  Fit(const std::vector<LogParameter>& p, const std::vector<double>& measured, const Predictor& predict)
      : parameters_(p), measured_(measured), predict_(predict), n_(static_cast<Eigen::Index>(p.size())) {}

  Vector run() {
    Vector x(n_);
    for (Eigen::Index j = 0; j < n_; ++j) x(j) = std::log(at(j).start);
    Vector r = residuals(x);
    double cost = total(x, r), damping = 1e-2;
    for (int step = 0; step < kMaxSteps && damping < 1e6; ++step) {
      const Vector next = clamp(x + direction(x, r, damping));
      const Vector r_next = residuals(next);
      const double c = total(next, r_next);
      if (!(c < cost)) {
        damping *= 5.0;
        continue;
      }
      const bool done = cost - c < 1e-7 * cost;
      x = next;
      r = r_next;
      cost = c;
      damping = std::max(1e-6, damping / 3.0);
      if (done) break;
    }
    return x;
  }

 private:
  const LogParameter& at(Eigen::Index j) const { return parameters_[static_cast<std::size_t>(j)]; }

  Vector clamp(Vector x) const {
    for (Eigen::Index j = 0; j < n_; ++j) {
      const double middle = std::log(at(j).start);
      x(j) = std::min(std::max(x(j), middle - kRange), middle + kRange);
    }
    return x;
  }

  Vector residuals(const Vector& x) const {
    std::vector<double> values(static_cast<std::size_t>(n_));
    for (Eigen::Index j = 0; j < n_; ++j) values[static_cast<std::size_t>(j)] = std::exp(x(j));
    const std::vector<double> predicted = predict_(values);
    Vector r(static_cast<Eigen::Index>(measured_.size()));
    for (std::size_t i = 0; i < measured_.size(); ++i)
      r(static_cast<Eigen::Index>(i)) = std::log(predicted[i] / measured_[i]);
    return r;
  }

  double total(const Vector& x, const Vector& r) const {
    double sum = 0;
    for (Eigen::Index i = 0; i < r.size(); ++i) sum += soft(r(i));
    for (Eigen::Index j = 0; j < n_; ++j) sum += std::pow(at(j).prior * (x(j) - std::log(at(j).start)), 2);
    return sum;
  }

  Vector direction(const Vector& x, const Vector& r, double damping) const {
    Matrix jacobian(r.size(), n_);
    for (Eigen::Index j = 0; j < n_; ++j) {
      Vector moved = x;
      moved(j) += kStep;
      jacobian.col(j) = (residuals(moved) - r) / kStep;
    }
    Vector weight(r.size());
    for (Eigen::Index i = 0; i < r.size(); ++i) weight(i) = soft_weight(r(i));
    Matrix normal = jacobian.transpose() * weight.asDiagonal() * jacobian;
    Vector right = -(jacobian.transpose() * (weight.cwiseProduct(r)));
    for (Eigen::Index j = 0; j < n_; ++j) {
      const double p2 = at(j).prior * at(j).prior;
      normal(j, j) += p2;
      right(j) -= p2 * (x(j) - std::log(at(j).start));
    }
    for (Eigen::Index j = 0; j < n_; ++j) normal(j, j) += damping * (normal(j, j) + 1e-9);
    return normal.ldlt().solve(right);
  }

  const std::vector<LogParameter>& parameters_;
  const std::vector<double>& measured_;
  const Predictor& predict_;
  Eigen::Index n_;
};

}  // namespace

std::vector<double> fit_logarithmic(const std::vector<LogParameter>& parameters, const std::vector<double>& measured,
                                    const Predictor& predict) {
  for (const LogParameter& p : parameters) CS_CHECK(p.start > 0, "a logarithmic parameter starts at {}", p.start);
  const Vector x = Fit(parameters, measured, predict).run();
  std::vector<double> out;
  for (Eigen::Index j = 0; j < x.size(); ++j) out.push_back(std::exp(x(j)));
  return out;
}

}  // namespace k3sim
