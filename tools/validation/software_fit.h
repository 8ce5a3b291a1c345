// Fits the few constants of every software stack to published step times, and scores them on cases left out.
//
// Every stack starts from the same nominal values (not from the shipped ones, which were fitted on all cases and would
// leak into the held-out scores). Constants (natural logarithm of the factor on the nominal value): rate of matrix
// products, attention, memory-bound kernels, collectives, expert exchange, host launches; kernel generation on Hopper
// and on Blackwell; FP8. Every stack's constants are drawn to the mean of all stacks (ridge, more so for stacks with
// few families), so that a stack with few cases, or one never seen, gets what the others agree on.
//   minimise  sum over cases huber(log predicted - log measured) + ridge (x_stack - x_all)^2 + ridge_all x_all^2
// Predictions are a quadratic surrogate in each logarithm, measured by evaluating every case at two steps per constant.
// Host time matters only once it exceeds the kernels', so it is tabulated at 1, 2, 4 and 8 times the profile's own and
// interpolated; its prior is as much wider (interpreters differ by factors, kernels by tenths).
// No rate constant exceeds the calibrated rates. No constant belongs to a case, a model or a cluster size.
// Source: engine-design section 14.5 (grouped folds).
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tools/validation/model_validation.h"

namespace k3sim {

constexpr int kSoftwareConstants = 9;
using Constants = std::array<double, kSoftwareConstants>;  // log factors on the nominal values
const std::array<const char*, kSoftwareConstants>& software_constant_names();
double nominal_constant(std::size_t k);  // host_time: 1, a factor on the profile's own launch and action times

// log predicted step time of one case as a function of the constants.
struct CaseSurrogate {
  std::size_t row = 0;  // in the rows of validate_cases
  std::string stack, family, source;
  double log_measured = 0, log_predicted = 0;  // predicted: with nominal constants
  double log_shipped = 0;                      // with the shipped profile
  Constants slope{}, curvature{};              // host time: unused
  std::array<double, 3> host_rise{};           // log time at 2, 4 and 8 times the host time, less log_predicted
  double at(const Constants& x) const;
  double before_fitting() const;  // with constants that no published run has moved
};
// Cases whose source searched a grid and does not print the winner are left out: their layout would be our choice.
std::vector<CaseSurrogate> case_surrogates(const std::vector<Case>& cases, int threads);

struct SoftwareFit {
  Constants all{};  // stacks without cases of their own
  std::map<std::string, Constants> stacks;
  const Constants& of(const std::string& stack) const;
};
SoftwareFit fit_software(const std::vector<CaseSurrogate>& cases, const std::vector<char>& used);

constexpr int kFamilyFolds = 5;
int family_fold(const std::string& family);  // by a fingerprint of its name

enum class HoldOut : std::uint8_t { family, source };
// Predicted over measured - 1 of every case by constants fitted without its fold (families: five folds by name).
std::vector<double> cross_validate(const std::vector<CaseSurrogate>& cases, HoldOut hold_out);

}  // namespace k3sim
