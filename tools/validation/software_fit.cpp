// Surrogates, ridge fit and cross-validation of software constants. Source: software_fit.h.
#include "tools/validation/software_fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "tools/validation/case_scenario.h"
#include "tools/validation/case_target.h"
#include "tools/validation/mapping_search.h"

namespace k3sim {

namespace {

constexpr double kStep = 0.12;        // log step of the finite differences
constexpr double kHuber = 0.06;       // residuals beyond 6 % count linearly
constexpr double kStackRidge = 0.15;  // pull of a stack towards the mean of all, in squared log units per unit
constexpr double kFamilies = 10;      // ... and this many times more, over the number of its families
constexpr double kMeanRidge = 0.05;   // pull of the mean towards the nominal values
constexpr double kBound = 0.6;        // no constant moves by more than a factor of 1.8
// Nor above what is physical: kernels and collectives reach at most the calibrated rates (streaming ones a tenth more,
// where a stack fuses better than assumed), FP8 at most a tenth more than its curve.
constexpr Constants kMost{1.0, 1.0, 1.1, 1.0, 1.0, 8.0, 1.8, 1.1, 1.8};
constexpr std::size_t kHostTime = 5;
// Before any run is seen, host times are thrice the profiles' launch times: 1.4 kernels per item of ours (50 against 35
// in an eager Llama layer) at 10.4 us per eager operator (hardware notes 5.5) where the profiles say 4 to 8 us.
Constants prior() {
  Constants x{};
  x[kHostTime] = std::log(3.0);
  return x;
}
// Prior precision of each constant over that of the efficiencies.
constexpr Constants kPrecision{1, 1, 1, 1, 1, 0.08, 1, 1, 1};

// Common starting point of all stacks: middle of the ranges in hardware notes 0 and 3.6.
constexpr Constants kNominal{0.93, 0.9, 0.85, 0.88, 0.73, 1.0, 1.0, 1.0, 1.0};

void reset_to_nominal(SoftwareProfile& s) {
  s.matmul_efficiency = kNominal[0];
  s.attention_efficiency = kNominal[1];
  s.memory_efficiency = kNominal[2];
  s.comm_efficiency = kNominal[3];
  s.ep_efficiency = kNominal[4];
  s.fp8_efficiency = kNominal[7];
  s.host_launch = scale(s.host_launch, 1.0 / s.host_factor);
  s.host_action = scale(s.host_action, 1.0 / s.host_factor);
}

enum class Generation : std::uint8_t { ampere, hopper, blackwell };

void apply(SoftwareProfile& s, Generation gpu, const Constants& x) {
  const double generation = gpu == Generation::hopper      ? std::exp(x[6])
                            : gpu == Generation::blackwell ? std::exp(x[8])
                                                           : 1.0;
  s.matmul_efficiency *= std::exp(x[0]) * generation;
  s.attention_efficiency *= std::exp(x[1]) * generation;
  s.memory_efficiency *= std::exp(x[2]);
  s.comm_efficiency *= std::exp(x[3]);
  s.ep_efficiency *= std::exp(x[4]);
  s.host_launch = scale(s.host_launch, std::exp(x[5]));
  s.host_action = scale(s.host_action, std::exp(x[5]));
  s.fp8_efficiency *= std::exp(x[7]);
}

Generation generation_of(const std::string& gpu) {
  const auto starts = [&](const char* prefix) { return gpu.rfind(prefix, 0) == 0; };
  if (starts("h1") || starts("h2") || starts("h8")) return Generation::hopper;
  return starts("b") || starts("gb") ? Generation::blackwell : Generation::ampere;
}

double log_step(const Scenario& s, const Machine& base, const Constants* x) {
  Machine m = base;
  if (x) {
    reset_to_nominal(m.software);
    apply(m.software, generation_of(s.cluster.gpu), *x);
  }
  StepOptions options;
  options.allow_assumed = true;
  return std::log(predict_step(s, m, options).summary.step.seconds());
}

// Value, slope and curvature in every constant; false when the case cannot be predicted.
bool measure(const Scenario& s, const Machine& machine, CaseSurrogate& c) {
  try {
    const Constants nominal{};
    c.log_shipped = log_step(s, machine, nullptr);
    c.log_predicted = log_step(s, machine, &nominal);
    for (std::size_t i = 0; i < c.host_rise.size(); ++i) {
      Constants more{};
      more[kHostTime] = (static_cast<double>(i) + 1.0) * std::log(2.0);
      c.host_rise[i] = log_step(s, machine, &more) - c.log_predicted;
    }
    for (std::size_t k = 0; k < kSoftwareConstants; ++k) {
      if (k == kHostTime) continue;
      Constants up{}, down{};
      up[k] = kStep;
      down[k] = -kStep;
      const double a = log_step(s, machine, &up), b = log_step(s, machine, &down);
      c.slope[k] = (a - b) / (2 * kStep);
      c.curvature[k] = (a + b - 2 * c.log_predicted) / (kStep * kStep);
    }
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

double huber(double r) {
  return std::fabs(r) <= kHuber ? r * r / 2 : kHuber * (std::fabs(r) - kHuber / 2);
}

// Runs of one family share their error, so that a stack is known as well as its families are many.
double stack_ridge(const std::vector<const CaseSurrogate*>& members) {
  std::set<std::string> families;
  for (const CaseSurrogate* c : members) families.insert(c->family);
  return kStackRidge * (1.0 + kFamilies / static_cast<double>(families.size()));
}

struct Objective {
  const std::vector<const CaseSurrogate*>& cases;
  const Constants& centre;
  double ridge;
  double operator()(const Constants& x) const {
    double sum = 0;
    for (const CaseSurrogate* c : cases) sum += huber(c->at(x) - c->log_measured);
    for (std::size_t k = 0; k < kSoftwareConstants; ++k)
      sum += ridge * kPrecision[k] * (x[k] - centre[k]) * (x[k] - centre[k]);
    return sum;
  }
};

// Coordinate search with halving steps: few constants, smooth objective, the same result everywhere.
Constants minimise(const Objective& f, Constants x) {
  double best = f(x);
  for (double step = 0.16; step > 0.002; step /= 2)
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t k = 0; k < kSoftwareConstants; ++k)
        for (double d : {step, -step}) {
          Constants y = x;
          const double most = std::log(kMost[k] / kNominal[k]);
          y[k] = std::clamp(y[k] + d, -kBound, k == kHostTime ? most : std::min(kBound, most));
          const double value = f(y);
          if (value < best - 1e-12) best = value, x = y, moved = true;
        }
    }
  return x;
}

}  // namespace

const std::array<const char*, kSoftwareConstants>& software_constant_names() {
  static const std::array<const char*, kSoftwareConstants> names{
      "matmul_efficiency", "attention_efficiency", "memory_efficiency", "communication_efficiency", "ep_efficiency",
      "host_time",         "hopper_efficiency",    "fp8_efficiency",    "blackwell_efficiency"};
  return names;
}

double nominal_constant(std::size_t k) {
  return kNominal[k];
}

double CaseSurrogate::at(const Constants& x) const {
  double y = log_predicted;
  for (std::size_t k = 0; k < kSoftwareConstants; ++k)
    if (k != kHostTime) y += x[k] * (slope[k] + x[k] * curvature[k] / 2);
  const double at = x[kHostTime] / std::log(2.0);
  const std::size_t piece = static_cast<std::size_t>(std::clamp(at, 0.0, 2.0));
  const double from = piece == 0 ? 0.0 : host_rise[piece - 1];
  return y + from + (at - static_cast<double>(piece)) * (host_rise[piece] - from);
}

double CaseSurrogate::before_fitting() const {
  return at(prior());
}

const Constants& SoftwareFit::of(const std::string& stack) const {
  const auto it = stacks.find(stack);
  return it == stacks.end() ? all : it->second;
}

std::vector<CaseSurrogate> case_surrogates(const std::vector<Case>& cases, int threads) {
  struct Job {
    CaseScenario mapped;
    const Machine* machine = nullptr;
    CaseSurrogate out;
    bool good = false;
  };
  std::vector<Job> jobs(cases.size());
  MachineCache machines;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (is_grid_search(cases[i])) continue;
    jobs[i].mapped = case_scenario(cases[i]);
    const auto target = step_target(cases[i]);
    if (!jobs[i].mapped.scenario || !target) continue;
    jobs[i].machine = &machines.get(*jobs[i].mapped.scenario);
    CaseSurrogate& c = jobs[i].out;
    c.row = i;
    c.stack = jobs[i].mapped.scenario->software;
    c.family = cases[i].family;
    c.source = cases[i].group;
    c.log_measured = std::log(target->step_time_s);
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++)
      if (jobs[i].machine) jobs[i].good = measure(*jobs[i].mapped.scenario, *jobs[i].machine, jobs[i].out);
  };
  std::vector<std::jthread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  pool.clear();
  std::vector<CaseSurrogate> out;
  for (Job& j : jobs)
    if (j.good) out.push_back(std::move(j.out));
  return out;
}

SoftwareFit fit_software(const std::vector<CaseSurrogate>& cases, const std::vector<char>& used) {
  std::map<std::string, std::vector<const CaseSurrogate*>> stacks;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (used[i]) stacks[cases[i].stack].push_back(&cases[i]);
  SoftwareFit fit;
  fit.all = prior();
  for (const auto& [name, members] : stacks) fit.stacks[name] = prior();
  for (int round = 0; round < 4; ++round) {
    Constants sum{};
    for (const auto& [name, members] : stacks) {
      fit.stacks[name] = minimise({members, fit.all, stack_ridge(members)}, fit.stacks[name]);
      for (std::size_t k = 0; k < kSoftwareConstants; ++k) sum[k] += fit.stacks[name][k];
    }
    // The mean of the stacks, drawn to the prior as if by kMeanRidge / kStackRidge more stacks.
    const double more = kMeanRidge / kStackRidge, n = static_cast<double>(stacks.size()) + more;
    for (std::size_t k = 0; k < kSoftwareConstants; ++k) fit.all[k] = (sum[k] + more * prior()[k]) / n;
  }
  return fit;
}

int family_fold(const std::string& family) {
  Fingerprint f;
  f.add(family);
  return static_cast<int>(f.value() % kFamilyFolds);
}

std::vector<double> cross_validate(const std::vector<CaseSurrogate>& cases, HoldOut hold_out) {
  const auto fold_of = [&](const CaseSurrogate& c) {
    return hold_out == HoldOut::source ? c.source : std::to_string(family_fold(c.family));
  };
  std::set<std::string> folds;
  for (const CaseSurrogate& c : cases) folds.insert(fold_of(c));
  std::vector<double> errors(cases.size(), 0.0);
  for (const std::string& fold : folds) {
    std::vector<char> used(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) used[i] = fold_of(cases[i]) != fold;
    const SoftwareFit fit = fit_software(cases, used);
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (!used[i]) errors[i] = std::exp(cases[i].at(fit.of(cases[i].stack)) - cases[i].log_measured) - 1.0;
  }
  return errors;
}

}  // namespace k3sim
