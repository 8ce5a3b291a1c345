// The cost model of a profile: one ready curve per key, chosen per kernel; the roofline where there is none.
// Outside the work (operations or bytes) that the curve's measurements span, the provenance is `boundary`; the forms
// themselves hold their rates there. Source: engine-design section 14; curve_key.h (substitutes).
#include <algorithm>
#include <map>

#include "models/cost/curve.h"
#include "models/cost/curve_key.h"
#include "models/cost/gpu_profile.h"
#include "models/cost/gradient_accumulation.h"
#include "models/cost/roofline.h"

namespace k3sim {

namespace {

class ProfileCost final : public CostModel {
 public:
  ProfileCost(const GpuProfile& p, const CostOptions& o)
      : peaks_{p.limits.bf16_dense, p.limits.fp8_dense, p.limits.hbm},
        roofline_(peaks_),
        kda_(o.kda.empty() ? p.kda : o.kda),
        attention_(o.attention.empty() ? p.attention : o.attention) {
    for (const auto& [name, calibrated] : p.curves) {
      CostCurve curve = calibrated;
      if (o.sustained_burst > Time() && curve.coefficients.count("throttle") > 0)
        curve.coefficients["sustained_burst_us"] = o.sustained_burst.microseconds();
      curves_[name] = Entry{make_curve(curve), curve};
    }
  }

  KernelTime time(const Kernel& k) const override {
    KernelTime t = product(k);
    if (k.accumulated > 0) t.time += Time::from_us(accumulation_us(k, peaks_));
    return t;
  }

 private:
  struct Entry {
    std::unique_ptr<const Curve> curve;
    CostCurve facts;
  };

  KernelTime product(const Kernel& k) const {
    const CurveChoice choice = choose_curve(k, kda_, attention_);
    const auto found = curves_.find(choice.key);
    if (found == curves_.end()) return k.family == KernelFamily::kda_prepass ? share_of_core(k) : roofline_.time(k);
    const CostCurve& facts = found->second.facts;
    KernelTime t;
    t.time = Time::from_us(std::max(0.0, found->second.curve->microseconds(k) + further_launches(k, facts)));
    t.provenance = facts.provenance;
    if (choice.substitute) t.provenance = worst(t.provenance, Provenance::borrowed);
    if (!inside(k, facts)) t.provenance = worst(t.provenance, Provenance::boundary);
    t.p95_ratio = facts.p95_ratio;
    return t;
  }

  // A GPU on which no pre-pass was timed.
  KernelTime share_of_core(const Kernel& k) const {
    KernelTime t = time(kda_prepass_as_core(k.name, k.batch, k.seq_q, k.heads, k.dim_qk));
    t.provenance = worst(t.provenance, Provenance::borrowed);
    return t;
  }

  // Streaming work that several launches share: each one more starts up anew; no launch at all is a mere marker.
  static double further_launches(const Kernel& k, const CostCurve& c) {
    constexpr double kStartUp = 4.0;
    if (k.family != KernelFamily::memory) return 0.0;
    const double fixed = c.at("fixed_us");
    return k.launches == 0 ? -fixed : (k.launches - 1) * std::min(fixed, kStartUp);
  }

  // Small kernels are bound by the fixed time, so only the upper end and far smaller work count as outside.
  static bool inside(const Kernel& k, const CostCurve& c) {
    if (c.work_max <= 0) return true;
    const double work = kernel_work(k);
    return work <= 1.5 * c.work_max && work >= 0.1 * c.work_min;
  }

  RooflinePeaks peaks_;
  RooflineCost roofline_;
  std::string kda_, attention_;
  std::map<std::string, Entry> curves_;
};

}  // namespace

double kernel_work(const Kernel& k) {
  if (k.family == KernelFamily::topk) return 4.0 * static_cast<double>(k.m) * static_cast<double>(k.n);
  const bool streaming = k.family == KernelFamily::memory || k.family == KernelFamily::optimizer;
  return streaming ? k.bytes.as_double() : k.flops.value();
}

std::shared_ptr<const CostModel> make_cost_model(const GpuProfile& profile, const CostOptions& options) {
  return std::make_shared<ProfileCost>(profile, options);
}

}  // namespace k3sim
