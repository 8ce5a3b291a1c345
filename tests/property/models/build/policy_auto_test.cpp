// Policy auto on random scenarios against every preset, judged as `k3sim run` judges: the whole prediction with kernel
// detail, the memory walk of every rank and the emulated allocator.
#include <doctest/doctest.h>

#include <random>

#include "models/build/machine_loader.h"
#include "models/build/step.h"
#include "models/config/model_loader.h"

using namespace k3sim;

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : r_(seed) {}
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(r_() % static_cast<std::uint64_t>(hi - lo + 1));
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + between(0, static_cast<std::int64_t>(values.size()) - 1));
  }

 private:
  std::mt19937_64 r_;
};

Scenario random_scenario(std::uint64_t seed) {
  Draw d(seed);
  Scenario s;
  s.model = load_model(d.one_of({"llama3_8b", "kimi_linear_48b", "qwen3_30b_a3b", "gpt_7_5b"}));
  // Some layers of the model are enough, and quick.
  s.model.layers.resize(std::min<std::size_t>(s.model.layers.size(), 16));
  s.cluster.gpu = d.one_of({"h800_sxm", "h100_sxm", "h200_sxm"});
  s.parallel.pp = d.one_of({1, 2, 4});
  s.parallel.vpp = s.parallel.pp > 1 ? d.one_of({1, 2}) : 1;
  s.parallel.dp = 8;
  s.cluster.nodes = s.parallel.pp;
  const bool experts = s.model.layers.back().ffn.is_moe();
  s.parallel.ep = experts ? d.one_of({4, 8}) : 1;
  if (experts) s.moe.dispatcher = d.one_of({"alltoall", "deepep", "moonep"});
  s.batch.sequence = d.one_of({2048, 4096, 8192});
  s.batch.micro_batch = d.one_of({1, 2});
  s.batch.global_sequences = 8 * s.batch.micro_batch * d.one_of({4, 8, 16});
  s.optimizer.zero = d.one_of({1, 1, 2});
  s.optimizer.states = d.one_of({"gpu", "cpu"});
  s.cluster.memory_override = Bytes::gib(d.between(14, 80));
  for (const char* word : {"fp8", "offload", "remote_offload", "recompute"})
    if (d.between(0, 5) == 0) s.activation.forbid.emplace_back(word);
  return s;
}

struct Verdict {
  bool fits = false;
  Bytes missing;
  Time step;
};

Verdict judge(Scenario s, const char* policy) {
  s.activation.policy = policy;
  const Machine machine = load_machine(s);
  StepOptions o;
  o.allow_assumed = true;
  o.graph.detail = StepGraphOptions::Detail::kernel;
  const StepSummary r = predict_step(s, machine, o).summary;
  return {r.fits, r.short_by + r.host_short_by.share(s.cluster.gpus_per_node), r.step};
}

}  // namespace

TEST_CASE("policy auto: on 50 random scenarios the prediction is never worse than with any preset") {
  int fitted = 0, saved = 0, faster = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Scenario s = random_scenario(seed);
    const Verdict chosen = judge(s, "auto");
    CAPTURE(seed);
    bool any_fits = false;
    Time best = Time::from_seconds_ceil(1e6);
    for (const char* preset : {"keep_all", "selective", "full_recompute", "k2", "k3_unified"}) {
      CAPTURE(preset);
      const Verdict v = judge(s, preset);
      any_fits = any_fits || v.fits;
      if (v.fits) best = std::min(best, v.step);
      if (v.fits) CHECK(chosen.fits);
      if (v.fits) CHECK(chosen.step <= v.step);
      if (!v.fits && !chosen.fits) CHECK(chosen.missing <= v.missing + Bytes(64));
    }
    fitted += chosen.fits ? 1 : 0;
    saved += chosen.fits && !any_fits ? 1 : 0;
    faster += chosen.fits && any_fits && chosen.step < best ? 1 : 0;
  }
  MESSAGE("fits in " << fitted << " of 50, in " << saved << " of them no preset does, in " << faster
                     << " it is faster than every preset that fits");
  CHECK(fitted > 20);
  CHECK(saved + faster > 5);
}

TEST_CASE("policy auto: what was chosen, taken again without a search, gives the same step") {
  int same = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Scenario s = random_scenario(seed);
    s.activation.policy = "auto";
    const Machine machine = load_machine(s);
    StepOptions o;
    o.allow_assumed = o.keep_graph = true;
    o.graph.detail = StepGraphOptions::Detail::kernel;
    const StepPrediction searched = predict_step(s, machine, o);
    o.reuse.choices = std::make_shared<const std::vector<PolicyChoice>>(searched.plan->choices);
    const StepPrediction taken = predict_step(s, machine, o);
    // A preset that won as a whole runs modules again, its choices name tensors: nearly the same.
    CHECK(taken.summary.step.seconds() == doctest::Approx(searched.summary.step.seconds()).epsilon(0.02));
    if (taken.summary.fingerprint == searched.summary.fingerprint) ++same;
    // Choices of other layers are not taken.
    Scenario shorter = s;
    shorter.parallel.pp *= 2;
    shorter.cluster.nodes *= 2;
    CHECK(predict_step(shorter, load_machine(shorter), o).plan->choices.size() ==
          static_cast<std::size_t>(shorter.parallel.pp));
  }
  CHECK(same >= 4);
}
