// Fits positive parameters of a nonlinear form to relative errors:
//   min_x sum_i rho(ln(predicted_i(e^x) / measured_i)) + sum_j (prior_j (x_j - ln start_j))^2
// by damped Gauss-Newton steps in x = ln(parameter) with a numerical Jacobian; rho is the soft absolute value of scale
// 5 %, so that single odd rows do not bend the curve. Positivity is built in; the weak prior keeps a parameter that the
// rows do not tell anything about at its physical starting value. Deterministic.
// Source: K. Levenberg, D. Marquardt (damping); SciPy's soft_l1 loss (definition of rho).
#pragma once

#include <functional>
#include <vector>

namespace k3sim {

struct LogParameter {
  double start = 1.0;  // > 0
  double prior = 0.1;  // strength: 0 free, large fixed
};

using Predictor = std::function<std::vector<double>(const std::vector<double>& parameters)>;

std::vector<double> fit_logarithmic(const std::vector<LogParameter>& parameters, const std::vector<double>& measured,
                                    const Predictor& predict);

}  // namespace k3sim
