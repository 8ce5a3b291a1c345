// See policy_search.h. Moves change one layer kind, so that only its part of the sums is made anew.
// Source: k3-facts 2.4; hardware notes 4.2.
#include "models/build/policy_search.h"

#include <algorithm>

namespace k3sim {

namespace {

using Treatments = std::vector<TensorTreatment>;

// Parts of one layer, without its count.
struct LayerCost {
  double added = 0, gpu = 0, host = 0, remote = 0, transient = 0;
};

constexpr TensorTreatment kOptions[] = {{},
                                        {false, false, StoragePlace::host},
                                        {false, true, StoragePlace::gpu},
                                        {false, true, StoragePlace::host},
                                        {false, false, StoragePlace::remote},
                                        {false, true, StoragePlace::remote}};

struct Sums {
  double added = 0, peak = 0, host = 0, remote = 0;
};

double over(double bytes, Bandwidth rate) {
  return bytes > 0 && rate.value() > 0 ? bytes / rate.value() : 0.0;
}

LayerCost cost_of(const PolicyProblem& p, const PolicyLayer& layer, const Treatments& how) {
  LayerCost c;
  std::array<bool, kModules> again{};
  double converted = 0, full_size = 0;
  for (std::size_t i = 0; i < how.size(); ++i) {
    const SavedTensor& t = layer.tensors[i];
    const double whole = t.bytes.as_double();
    if (how[i] != TensorTreatment{}) full_size += whole;
    if (how[i].recompute) {
      again[static_cast<std::size_t>(t.module)] = true;
      continue;
    }
    const double kept = how[i].fp8 ? fp8_tile_bytes(t.bytes).as_double() : whole;
    if (how[i].fp8) converted += whole + kept;
    (how[i].place == StoragePlace::host ? c.host : how[i].place == StoragePlace::remote ? c.remote : c.gpu) += kept;
  }
  double replay = 0;
  for (std::size_t m = 0; m < again.size(); ++m)
    if (again[m]) replay += layer.replay[m].seconds();
  const double fp8 = over(converted, p.convert_rate);
  const double copy = over(c.host, p.host_rate) + over(c.remote, p.network_rate);
  c.added = replay + 2 * fp8 + std::max(0.0, copy - layer.forward.seconds() - fp8) +
            std::max(0.0, copy - layer.backward.seconds() - replay - fp8);
  c.transient = full_size + layer.workspace.as_double();
  return c;
}

double flights(const PolicyProblem& p, const PolicyLayer& l) {
  return l.in_flight > 0 ? l.in_flight : p.in_flight;
}

class Search {
 public:
  Search(const PolicyProblem& p, std::vector<Treatments> start) : p_(p), how_(std::move(start)) {
    for (std::size_t l = 0; l < p_.layers.size(); ++l) cost_.push_back(cost_of(p_, p_.layers[l], how_[l]));
    moves_.resize(cost_.size());
    now_ = sums(cost_.size(), {});
  }

  Sums now() const { return now_; }
  bool fits(const Sums& s) const {
    return s.peak <= p_.limit.as_double() && host_fits(s) && s.remote <= p_.remote_limit.as_double();
  }
  bool host_fits(const Sums& s) const { return p_.host_limit.count() == 0 || s.host <= p_.host_limit.as_double(); }
  const std::vector<Treatments>& treatments() const { return how_; }

  void run() {
    while (!fits(now_) && step([this](const Sums& s) { return freed_per_second(s); })) {
    }
    if (!fits(now_)) return;
    while (step([this](const Sums& s) { return fits(s) ? now_.added - s.added : -1.0; })) {
    }
  }

 private:
  Sums sums(std::size_t changed, const LayerCost& other) const {
    Sums s;
    double gpu = 0, transient = 0;
    for (std::size_t l = 0; l < cost_.size(); ++l) {
      const LayerCost& c = l == changed ? other : cost_[l];
      s.added += p_.layers[l].count * c.added;
      const double alive = p_.layers[l].count * flights(p_, p_.layers[l]);
      gpu += alive * c.gpu;
      s.host += alive * c.host;
      s.remote += alive * c.remote;
      transient = std::max(transient, c.transient);
    }
    s.peak = gpu + transient;
    return s;
  }

  double freed_per_second(const Sums& s) const {
    if (p_.host_limit.count() > 0 && s.host > p_.host_limit.as_double() && s.host > now_.host) return -1.0;
    if (s.remote > p_.remote_limit.as_double() && s.remote > now_.remote) return -1.0;
    const double freed = now_.peak - s.peak;
    return freed <= 0 ? -1.0 : freed / (std::max(0.0, s.added - now_.added) + 1e-7);
  }

  // One layer kind treated otherwise.
  struct Move {
    Treatments how;
    LayerCost cost;
  };

  // Takes the move with the highest positive value.
  template <class Value>
  bool step(const Value& value) {
    double best = 1e-12;
    std::size_t best_layer = 0;
    const Move* taken = nullptr;
    for (std::size_t l = 0; l < how_.size(); ++l)
      for (const Move& move : moves(l)) {
        const double v = value(sums(l, move.cost));
        if (v > best) best = v, best_layer = l, taken = &move;
      }
    if (!taken) return false;
    how_[best_layer] = taken->how;
    cost_[best_layer] = taken->cost;
    moves_[best_layer].clear();
    now_ = sums(cost_.size(), {});
    return true;
  }

  // They depend on their own layer alone, so that a step makes only those of one layer anew.
  const std::vector<Move>& moves(std::size_t l) {
    std::vector<Move>& known = moves_[l];
    if (known.empty()) {
      Treatments how = how_[l];
      const auto add = [&] { known.push_back({how, cost_of(p_, p_.layers[l], how)}); };
      move_tensors(l, how, add);
      if (p_.recompute) move_modules(l, how, add);
    }
    return known;
  }

  template <class Add>
  void move_tensors(std::size_t l, Treatments& how, const Add& add) const {
    const std::vector<SavedTensor>& tensors = p_.layers[l].tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorTreatment before = how[i];
      for (const TensorTreatment& t : kOptions) {
        if (t == before || !allowed(tensors[i], t)) continue;
        how[i] = t;
        add();
      }
      how[i] = before;
    }
  }

  template <class Add>
  void move_modules(std::size_t l, Treatments& how, const Add& add) const {
    const std::vector<SavedTensor>& tensors = p_.layers[l].tensors;
    for (int m = 0; m < kModules; ++m) {
      const Treatments before = how;
      for (std::size_t i = 1; i < tensors.size(); ++i)
        if (tensors[i].module == static_cast<Module>(m) && tensors[i].recomputable)
          how[i] = {true, false, StoragePlace::gpu};
      if (how != before) add();
      how = before;
    }
  }

  bool allowed(const SavedTensor& t, const TensorTreatment& how) const {
    const bool narrow = p_.fp8 && bytes_per_element(t.dtype) == 2.0;
    if (how.fp8 && !narrow) return false;
    if (how.place == StoragePlace::host && !p_.offload) return false;
    return how.place != StoragePlace::remote || (p_.remote && how.fp8 == narrow);
  }

  const PolicyProblem& p_;
  std::vector<Treatments> how_;
  std::vector<LayerCost> cost_;
  std::vector<std::vector<Move>> moves_;  // by layer; empty: to be made
  Sums now_;
};

PolicyChoice result(const Search& s) {
  PolicyChoice c;
  c.tensors = s.treatments();
  c.added_seconds = s.now().added;
  c.peak = Bytes::ceil(s.now().peak);
  c.host = Bytes::ceil(s.now().host);
  c.remote = Bytes::ceil(s.now().remote);
  c.fits = s.fits(s.now());
  c.host_fits = s.host_fits(s.now());
  return c;
}

// Full recompute drops what no other policy can: everything but the layer's input, and runs the whole forward again.
PolicyChoice full_recompute(const PolicyProblem& p) {
  PolicyChoice c;
  c.full = true;
  double gpu = 0, transient = 0;
  for (const PolicyLayer& l : p.layers) {
    Bytes all;
    for (const SavedTensor& t : l.tensors) all += t.bytes;
    c.added_seconds += l.count * l.forward.seconds();
    gpu += l.tensors.empty() ? 0.0 : l.count * flights(p, l) * l.tensors.front().bytes.as_double();
    transient = std::max(transient, (all + l.workspace).as_double());
    c.tensors.emplace_back(l.tensors.size());
  }
  c.peak = Bytes::ceil(gpu + transient);
  c.host_fits = true;
  c.fits = c.peak <= p.limit;
  return c;
}

std::vector<Treatments> treatments_of(const PolicyProblem& p, const StoragePolicy& preset) {
  std::vector<Treatments> out;
  for (const PolicyLayer& l : p.layers) {
    out.emplace_back();
    for (std::size_t i = 0; i < l.tensors.size(); ++i) {
      const SavedTensor& t = l.tensors[i];
      out.back().push_back(treatment_of(preset, {t.name, t.module, t.dtype, t.recomputable, i == 0}));
    }
  }
  return out;
}

}  // namespace

PolicyChoice evaluate_policy(const PolicyProblem& p, std::vector<Treatments> tensors) {
  return result(Search(p, std::move(tensors)));
}

PolicyChoice apply_preset(const PolicyProblem& p, const StoragePolicy& preset) {
  return preset.full ? full_recompute(p) : evaluate_policy(p, treatments_of(p, preset));
}

bool better_choice(const PolicyChoice& a, const PolicyChoice& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits && a.host_fits != b.host_fits) return a.host_fits;
  if (!a.fits && a.peak != b.peak) return a.peak < b.peak;
  if (a.added_seconds != b.added_seconds) return a.added_seconds < b.added_seconds;
  return a.peak < b.peak;
}

PolicyChoice search_policies(const PolicyProblem& p, const std::vector<NamedPreset>& presets) {
  PolicyChoice best = evaluate_policy(p, treatments_of(p, {}));
  best.from = "keep_all";
  const auto offer = [&](PolicyChoice c, const std::string& from) {
    c.from = from;
    if (better_choice(c, best)) best = std::move(c);
  };
  std::vector<NamedPreset> starts;
  for (const NamedPreset& preset : presets) {
    const StoragePolicy& s = preset.policy;
    const bool rebuilds = s.full || std::find(s.modules.begin(), s.modules.end(), true) != s.modules.end();
    if ((p.fp8 || !s.fp8) && (p.offload || !s.offload) && (p.recompute || !rebuilds)) starts.push_back(preset);
  }
  starts.push_back({"keep_all", {}});
  for (const NamedPreset& preset : starts) {
    offer(apply_preset(p, preset.policy), preset.name);
    if (preset.policy.full) continue;
    Search s(p, treatments_of(p, preset.policy));
    s.run();
    offer(result(s), preset.name);
  }
  return best;
}

}  // namespace k3sim
