// See vision_load.h. Source: k3-facts 2.8.
#include "models/build/vision_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "sim/base/rng.h"

namespace k3sim {

namespace {

constexpr std::uint64_t kCountDraws = 0x766973, kSizeDraws = 0x76697a;
constexpr std::int64_t kPatchStep = 64;  // sizes are rounded to so many patches, a row of 8 x 8 tokens' half
constexpr int kMostPools = 8;            // coupled pools that are drawn

std::int64_t poisson(double mean, const RandomKey& key) {
  double left = std::exp(-mean), product = 1;
  std::int64_t n = -1;
  do product *= random_uniform(key, static_cast<std::uint64_t>(++n));
  while (product > left);
  return n;
}

// Places the images (largest first) when every image may take as long as `target`.
ImageAssignment assign_for(const std::vector<std::int64_t>& patches, int ranks, int largest_group,
                           const ImageCost& cost, double target) {
  ImageAssignment out;
  out.ranks.resize(static_cast<std::size_t>(ranks));
  std::vector<double> load(static_cast<std::size_t>(ranks));
  for (std::int64_t p : patches) {
    int n = 1;
    while (2 * n <= std::min(ranks, largest_group) && cost({p, n}) > target) n *= 2;
    const double time = cost({p, n});
    int best = 0;
    double ready = std::numeric_limits<double>::infinity();
    for (int block = 0; block + n <= ranks; block += n) {
      const double busiest = *std::max_element(load.begin() + block, load.begin() + block + n);
      if (busiest < ready) ready = busiest, best = block;
    }
    for (int r = best; r < best + n; ++r) {
      load[static_cast<std::size_t>(r)] = ready + time;
      out.ranks[static_cast<std::size_t>(r)].push_back({p, n});
    }
  }
  out.makespan = *std::max_element(load.begin(), load.end());
  out.mean = std::accumulate(load.begin(), load.end(), 0.0) / ranks;
  return out;
}

class Pricer {
 public:
  Pricer(const StepPlan& plan, const Machine& machine) : plan_(plan), machine_(machine) {}

  // Seconds of the whole encoder over one rank's images; without `issuing` as if the host were infinitely fast.
  double seconds(const std::vector<ImagePart>& images, Pass pass, bool issuing = true) {
    if (images.empty()) return 0;
    const ModelSpec& m = plan_.scenario.model;
    double layer = 0, edges = 0, launches = 0;
    for (const Kernel& k : vision_layer_kernels(m.vision, images, pass)) layer += priced(k), launches += k.launches;
    for (const Kernel& k : vision_edge_kernels(m, images, pass)) edges += priced(k);
    for (const ImagePart& i : images) layer += gather(i) * (pass == Pass::forward ? 1 : 2);
    // Images go through the encoder in pieces, which bound what is alive in backward.
    const double pieces = std::max(
        1.0, std::ceil(static_cast<double>(vision_rows(images)) / static_cast<double>(plan_.scenario.vision.piece)));
    const double issue = issuing ? pieces * launches * machine_.software.host_launch.seconds() : 0.0;
    return static_cast<double>(m.vision.layers) * std::max(layer, issue) + edges;
  }

  double alone(const ImagePart& image) {
    const auto [it, fresh] = alone_.try_emplace({image.patches, image.ranks}, 0.0);
    if (fresh) it->second = seconds({image}, Pass::forward, false);
    return it->second;
  }

 private:
  double priced(const Kernel& k) const {
    return machine_.cost->time(k).time.seconds() / software_efficiency(k, machine_.software);
  }
  double gather(const ImagePart& i) const {
    if (i.ranks == 1) return 0;
    const Bytes all = vision_gather_bytes(plan_.scenario.model.vision, i.patches);
    return plan_.comm->subgroup(Collective::all_gather, all, GroupKind::dp, i.ranks, true).time.seconds();
  }

  const StepPlan& plan_;
  const Machine& machine_;
  std::map<std::pair<std::int64_t, int>, double> alone_;
};

// The sequences whose images one pool of ranks shares.
struct Pool {
  int ranks = 1;
  std::int64_t sequences = 1;
  int coupled = 1;  // pools that wait for each other
};

Pool pool_of(const StepPlan& plan) {
  const ParallelConfig& p = plan.scenario.parallel;
  Pool pool;
  pool.ranks = std::max(p.cp, plan.scenario.vision.group);
  pool.sequences = std::max(1, pool.ranks / p.cp) * plan.scenario.batch.micro_batch;
  pool.coupled = std::clamp(p.ep / pool.ranks, 1, kMostPools);
  return pool;
}

}  // namespace

std::vector<std::int64_t> draw_images(const VisionConfig& v, std::int64_t sequence) {
  const auto entity = static_cast<std::uint64_t>(sequence);
  const std::int64_t n = poisson(v.images_per_sequence, {v.seed, kCountDraws, entity});
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < n; ++i) {
    const double draw = random_normal({v.seed, kSizeDraws, entity}, static_cast<std::uint64_t>(i));
    const double size = static_cast<double>(v.image_patches) * std::exp(v.size_sigma * draw);
    const auto steps = static_cast<std::int64_t>(size / kPatchStep + 0.5);
    const std::int64_t most = std::max<std::int64_t>(1, v.largest_image / kPatchStep);
    out.push_back(std::clamp<std::int64_t>(steps, 1, most) * kPatchStep);
  }
  return out;
}

ImageAssignment assign_images(std::vector<std::int64_t> patches, int ranks, int largest_group, const ImageCost& cost) {
  std::sort(patches.begin(), patches.end(), std::greater<>());
  double all = 0;
  for (std::int64_t p : patches) all += cost({p, 1});
  ImageAssignment best;
  for (double target : {1e9, 3.0, 2.0, 1.5, 1.0, 0.5}) {
    ImageAssignment a = assign_for(patches, ranks, largest_group, cost, target * all / ranks);
    if (best.ranks.empty() || a.makespan < best.makespan) best = std::move(a);
    if (largest_group == 1) break;
  }
  return best;
}

VisionPlan make_vision_plan(const StepPlan& plan, const Machine& machine) {
  const VisionConfig& v = plan.scenario.vision;
  VisionPlan out;
  if (v.placement == "none") return out;
  const Pool pool = pool_of(plan);
  Pricer pricer(plan, machine);
  double patches = 0, imbalance = 0;
  for (std::int64_t m = 0; m < plan.microbatches; ++m) {
    VisionLoad load;
    std::vector<ImagePart> slowest;
    double longest = -1;
    for (int c = 0; c < pool.coupled; ++c) {
      std::vector<std::int64_t> images;
      for (std::int64_t s = 0; s < pool.sequences; ++s)
        for (std::int64_t p : draw_images(v, (m * pool.coupled + c) * pool.sequences + s)) images.push_back(p);
      patches += static_cast<double>(std::accumulate(images.begin(), images.end(), std::int64_t{0}));
      const ImageAssignment a = assign_images(std::move(images), pool.ranks, std::min(v.group, pool.ranks),
                                              [&](const ImagePart& i) { return pricer.alone(i); });
      if (a.makespan <= longest) continue;
      longest = a.makespan;
      load.imbalance = a.mean > 0 ? a.makespan / a.mean : 1.0;
      slowest = *std::max_element(a.ranks.begin(), a.ranks.end(),
                                  [](const auto& x, const auto& y) { return vision_rows(x) < vision_rows(y); });
    }
    load.rows = vision_rows(slowest);
    for (const ImagePart& i : slowest) load.at_once = std::max(load.at_once, (i.patches + i.ranks - 1) / i.ranks);
    load.at_once = std::max(load.at_once, std::min(load.rows, v.piece));
    // Ranks of a sub-group wait for each other, which the kernels of one rank do not show.
    const double kernels = pricer.seconds(slowest, Pass::forward), forward = std::max(kernels, longest);
    const double waiting = kernels > 0 ? forward / kernels : 1.0;
    load.forward = Time::from_seconds_ceil(forward);
    load.backward = Time::from_seconds_ceil(forward + waiting * pricer.seconds(slowest, Pass::input_grad));
    imbalance += load.imbalance;
    out.microbatches.push_back(load);
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(1, plan.microbatches));
  out.parameters = vision_parameters(plan.scenario.model);
  out.mean_patches = patches / n / pool.coupled / pool.ranks;
  out.mean_imbalance = imbalance / n;
  out.embeddings =
      Bytes::ceil(out.mean_patches / kPatchesPerToken * static_cast<double>(plan.scenario.model.hidden) * 2);
  out.activations = vision_activation_bytes(plan.scenario.model.vision);
  return out;
}

}  // namespace k3sim
