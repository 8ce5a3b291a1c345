// MoonEP family. Ranks are laid over the GPUs in use (rank r on GPU r mod gpus), so that the planner and all data
// movement are checked on one GPU with eight ranks; the movement is timed with one rank per GPU.
//   logical bytes: tokens * topk * width * 2, what benchmarks of such libraries count; network bytes are fewer
//   (section 3.6).
// Source: k3-facts.md section 3; the host reference is calibrate/harness/moonep_reference.h.
#include <algorithm>
#include <memory>
#include <numeric>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/moonep_kernels.cuh"
#include "calibrate/kernels/multi_gpu.h"
#include "calibrate/kernels/random_fill.h"
#include "sim/base/rng.h"

namespace k3sim {

namespace {

struct Rank {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::vector<int> expert_of;
  DeviceBuffer<int> expert, block_counts, code, link;
  DeviceBuffer<bf16> x, rows, y;
};

// topk distinct experts per token, popularity exp(sigma * normal) shared by all ranks (k3-facts section 3.7).
std::vector<int> route(const MoonepShape& s, std::uint64_t seed, int rank, double sigma) {
  std::vector<double> rate(s.experts);
  for (int e = 0; e < s.experts; ++e) rate[e] = std::exp(-sigma * random_normal({seed, 1, 0}, std::uint64_t(e)));
  std::vector<int> out;
  std::vector<std::pair<double, int>> draw(s.experts);
  for (int t = 0; t < s.tokens; ++t) {
    for (int e = 0; e < s.experts; ++e) {
      const double u = random_uniform({seed, 2, std::uint64_t(rank)}, std::uint64_t(t) * s.experts + e);
      draw[e] = {-std::log(u) * rate[e], e};  // the topk smallest of exponential clocks: sampling without replacement
    }
    std::nth_element(draw.begin(), draw.begin() + s.topk - 1, draw.end());
    for (int k = 0; k < s.topk; ++k) out.push_back(draw[k].second);
  }
  return out;
}

struct World {
  MoonepShape s;
  int width;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<int> counts;
  DeviceBuffer<int> counts_device, tables;
  MoonepTables t{};
  MoonepPeers peers{};

  World(Bench& b, const MoonepShape& shape, int row_width, double sigma) : s(shape), width(row_width) {
    const std::size_t table = std::size_t(s.ranks) * s.experts;
    counts.assign(table, 0);
    for (int r = 0; r < s.ranks; ++r) {
      ranks.push_back(make_rank(b, r, sigma));
      for (const int e : ranks[r]->expert_of) ++counts[std::size_t(r) * s.experts + e];
      peers.rows[r] = ranks[r]->rows.get();
      peers.link[r] = ranks[r]->link.get();
    }
    K3_CUDA(cudaSetDevice(0));
    counts_device = DeviceBuffer<int>(table), tables = DeviceBuffer<int>(4 * table);
    counts_device.upload(counts);
    t = {tables.get(), tables.get() + table, tables.get() + 2 * table, tables.get() + 3 * table};
  }
  ~World() {
    for (auto& r : ranks) cudaStreamDestroy(r->stream);
  }

  std::unique_ptr<Rank> make_rank(Bench& b, int r, double sigma) const {
    auto rank = std::make_unique<Rank>();
    rank->device = r % b.options().gpus;
    K3_CUDA(cudaSetDevice(rank->device));
    K3_CUDA(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
    rank->expert_of = route(s, b.options().seed, r, sigma);
    rank->expert = DeviceBuffer<int>(rank->expert_of.size()), rank->code = DeviceBuffer<int>(rank->expert_of.size());
    rank->expert.upload(rank->expert_of);
    rank->block_counts = DeviceBuffer<int>(std::size_t(moonep_blocks(s)) * s.experts);
    rank->x = random_buffer<bf16>(std::size_t(s.tokens) * width, b.next_seed());
    rank->y = DeviceBuffer<bf16>(rank->x.size());
    rank->rows = DeviceBuffer<bf16>(std::size_t(s.capacity_rows()) * width);
    rank->link = DeviceBuffer<int>(s.capacity_rows());
    rank->y.poison(), rank->rows.poison(), rank->link.zero();
    return rank;
  }

  template <class F>
  void each(F f) {
    for (auto& r : ranks) {
      K3_CUDA(cudaSetDevice(r->device));
      f(*r);
    }
  }
  void barrier(int gpus) const { synchronize_all(gpus); }
  void plan(cudaStream_t stream) { moonep_plan_kernel(s, counts_device.get(), t, stream); }
  void addresses(int r) {
    Rank& k = *ranks[r];
    moonep_addresses(s, t, r, {k.expert.get(), k.block_counts.get(), k.code.get()}, k.stream);
  }
  void dispatch(Rank& r) { moonep_dispatch(s, r.x.get(), r.code.get(), peers, width, r.stream); }
  void expand(Rank& r) { moonep_expand(r.rows.get(), r.link.get(), s.capacity_rows(), width, r.stream); }
  void reduce(Rank& r) { moonep_reduce(r.rows.get(), r.link.get(), s.capacity_rows(), width, r.stream); }
  void combine(Rank& r) { moonep_combine(s, r.code.get(), peers, r.y.get(), width, r.stream); }
};

void plan_everything(World& w, int gpus) {
  K3_CUDA(cudaSetDevice(0));
  w.plan(nullptr);
  w.barrier(gpus);
  for (int r = 0; r < w.s.ranks; ++r) {
    K3_CUDA(cudaSetDevice(w.ranks[r]->device));
    w.addresses(r);
  }
  w.barrier(gpus);
}

void check_world(Bench& b, const MoonepShape& s, double sigma) {
  const int gpus = b.options().gpus, width = 256;
  World w(b, s, width, sigma);
  plan_everything(w, gpus);
  const MoonepPlan plan = plan_moonep(s, w.counts);
  const std::string tag = concat("moonep ranks ", s.ranks, " experts ", s.experts, " sigma ", sigma, " ");
  auto alloc = w.tables.download();
  alloc.resize(plan.alloc.size());
  b.verify(tag + "planner rows per expert", relative_error(alloc, plan.alloc), 0);
  std::vector<std::vector<std::int64_t>> codes;
  int wrong = 0;
  for (int r = 0; r < s.ranks; ++r) {
    codes.push_back(moonep_rows(s, plan, w.counts, r, w.ranks[r]->expert_of));
    const auto got = w.ranks[r]->code.download();
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != codes[r][i];
  }
  b.verify(tag + "addresses", wrong, 0);
  w.each([&](Rank& r) { w.dispatch(r); });
  w.barrier(gpus);
  w.each([&](Rank& r) { w.expand(r); });
  w.barrier(gpus);
  std::vector<std::vector<double>> rows;
  for (auto& r : w.ranks) rows.push_back(download_double(r->rows));
  std::vector<double> sent, arrived;
  for (int r = 0; r < s.ranks; ++r) {
    const auto x = download_double(w.ranks[r]->x);
    for (std::size_t i = 0; i < codes[r].size(); ++i)
      for (int c = 0; c < width; c += 17) {
        sent.push_back(x[i / s.topk * width + c]);
        arrived.push_back(rows[codes[r][i] / s.capacity_rows()][codes[r][i] % s.capacity_rows() * width + c]);
      }
  }
  b.verify(tag + "dispatch", relative_error(arrived, sent), 0);
  for (int r = 0; r < s.ranks; ++r) {  // fresh expert outputs
    K3_CUDA(cudaSetDevice(w.ranks[r]->device));
    w.ranks[r]->rows = random_buffer<bf16>(w.ranks[r]->rows.size(), b.next_seed());
    w.peers.rows[r] = w.ranks[r]->rows.get();
    rows[r] = download_double(w.ranks[r]->rows);
  }
  w.each([&](Rank& r) { w.reduce(r); });
  w.barrier(gpus);
  w.each([&](Rank& r) { w.combine(r); });
  w.barrier(gpus);
  std::vector<double> want, got;
  for (int r = 0; r < s.ranks; ++r) {
    const auto y = download_double(w.ranks[r]->y);
    for (int t = 0; t < s.tokens; ++t)
      for (int c = 0; c < width; c += 17) {
        double sum = 0;
        for (int k = 0; k < s.topk; ++k) {
          const auto code = codes[r][std::size_t(t) * s.topk + k];
          sum += rows[code / s.capacity_rows()][code % s.capacity_rows() * width + c];
        }
        want.push_back(sum);
        got.push_back(y[std::size_t(t) * width + c]);
      }
  }
  b.verify(tag + "combine", relative_error(got, want), 1e-2);
}

void check_replicas(Bench& b) {
  const int far = b.options().gpus - 1;
  const std::size_t n = 100'000;
  auto grad = random_buffer<float>(n, b.next_seed());
  K3_CUDA(cudaSetDevice(far));
  auto replica = random_buffer<float>(n, b.next_seed());
  DeviceBuffer<float> copy(n);
  copy.poison();
  K3_CUDA(cudaSetDevice(0));
  auto want = download_double(grad);
  const auto add = download_double(replica);
  moonep_push(grad.get(), copy.get(), n * sizeof(float), 32, b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  b.verify("moonep weight push", relative_error(copy.download(), want), 0);
  for (std::size_t i = 0; i < n; ++i) want[i] += add[i];
  moonep_return_gradient(grad.get(), replica.get(), n, 32, b.stream());
  K3_CUDA(cudaStreamSynchronize(b.stream()));
  b.verify("moonep gradient return", relative_error(grad.download(), want), 1e-6);
  b.verify("moonep replica cleared", relative_error(replica.download(), std::vector<double>(n, 0.0)), 0);
}

void time_planner(Bench& b) {
  for (const int ranks : {8, 64})
    for (const double sigma : {0.3, 1.0}) {
      const MoonepShape s{ranks, 896, ranks == 8 ? 8192 : 1024, 16};
      const std::string params = concat("ranks=", ranks, ";E=896;K=16;S=", s.tokens, ";sigma=", sigma);
      const KernelId plan{"moonep", "k3_moonep_plan", "fwd", "i32", params, 0, double(ranks) * 896 * 4 * 4};
      const KernelId rows{"moonep", "k3_moonep_addresses", "fwd", "i32", params, 0, double(s.entries()) * 8};
      if (b.skip(plan) && b.skip(rows)) continue;
      const std::size_t table = std::size_t(ranks) * 896;
      std::vector<int> counts(table, 0), mine;
      for (int r = 0; r < ranks; ++r) {  // 1024 tokens are drawn per rank and repeated, to keep the set-up short
        if (r < 8) mine = route({ranks, 896, 1024, 16}, 7, r, sigma);
        while (int(mine.size()) < s.entries()) mine.insert(mine.end(), mine.begin(), mine.begin() + 16 * 1024);
        for (const int e : mine) ++counts[std::size_t(r) * 896 + e];
      }
      DeviceBuffer<int> device_counts(table), tables(4 * table), expert(mine.size()), code(mine.size());
      DeviceBuffer<int> blocks(std::size_t(moonep_blocks(s)) * 896);
      device_counts.upload(counts), expert.upload(mine);
      const MoonepTables t{tables.get(), tables.get() + table, tables.get() + 2 * table, tables.get() + 3 * table};
      b.time(plan, [&] { moonep_plan_kernel(s, device_counts.get(), t, b.stream()); });
      b.time(rows, [&] { moonep_addresses(s, t, ranks - 1, {expert.get(), blocks.get(), code.get()}, b.stream()); });
    }
}

void time_movement(Bench& b, int tokens, double sigma) {
  const int gpus = b.options().gpus;
  const MoonepShape s{gpus, 896, tokens, 16};
  const std::string params = concat("ranks=", gpus, ";E=896;K=16;S=", tokens, ";H=3584;sigma=", sigma);
  const double logical = double(s.entries()) * 3584 * 2;
  const auto id = [&](const char* name) { return KernelId{"moonep", name, "fwd", "bf16", params, 0, logical}; };
  if (b.skip(id("k3_moonep_combine"))) return;
  World w(b, s, 3584, sigma);
  plan_everything(w, gpus);
  const auto row = [&](const char* name, auto step) {
    b.time_with(id(name), [&] { return wall_time_us(gpus, [&](int d) { step(*w.ranks[d]); }); });
  };
  row("k3_moonep_dispatch", [&](Rank& r) { w.dispatch(r); });
  row("k3_moonep_dispatch_expand", [&](Rank& r) { w.expand(r); });
  row("k3_moonep_combine_reduce", [&](Rank& r) { w.reduce(r); });
  row("k3_moonep_combine", [&](Rank& r) { w.combine(r); });
}

void time_replicas(Bench& b) {
  const std::size_t expert = std::size_t(3) * 3584 * 3072;  // parameters of one expert
  for (const int slots : {1, 4}) {
    auto weights = random_buffer<bf16>(slots * expert, b.next_seed());
    auto grad = random_buffer<float>(slots * expert, b.next_seed());
    K3_CUDA(cudaSetDevice(1));
    DeviceBuffer<bf16> replica(slots * expert);
    auto replica_grad = random_buffer<float>(slots * expert, b.next_seed());
    K3_CUDA(cudaSetDevice(0));
    const std::string params = concat("slots=", slots, ";bytes=", slots * expert * 2);
    for (const int blocks : {32, 132})
      b.time({"moonep", "k3_moonep_weight_push", "fwd", "bf16", concat(params, ";sms=", blocks), 0,
              2.0 * double(slots * expert)},
             [&] { moonep_push(weights.get(), replica.get(), weights.bytes(), blocks, b.stream()); });
    b.time(
        {"moonep", "k3_moonep_weight_copy_engine", "fwd", "bf16", params, 0, 2.0 * double(slots * expert)},
        [&] { K3_CUDA(cudaMemcpyPeerAsync(replica.get(), 1, weights.get(), 0, weights.bytes(), b.stream())); },
        Cache::kWarm);  // a copy engine does not wait for the flush in a way that events see
    b.time({"moonep", "k3_moonep_gradient_return", "bwd", "fp32",
            concat("slots=", slots, ";bytes=", slots * expert * 4, ";sms=32"), 0, 4.0 * double(slots * expert)},
           [&] { moonep_return_gradient(grad.get(), replica_grad.get(), slots * expert, 32, b.stream()); });
  }
}

}  // namespace

void run_moonep(Bench& b) {
  if (b.options().gpus > 1 && !enable_peer_access(b.options().gpus))
    throw CudaFailure("no peer access between the GPUs");
  check_world(b, {8, 64, 96, 4, 16}, 1.0);
  check_world(b, {4, 32, 256, 16, 128}, 0.3);
  check_world(b, {8, 896, 64, 16, 128}, 0.5);
  check_replicas(b);
  if (b.options().check_only) return;
  time_planner(b);
  if (b.options().gpus < 2) {
    b.note(
        "skipped moonep dispatch, combine, weight prefetch and gradient return between GPUs: needs 2 GPUs, 1 in use");
    return;
  }
  for (const int tokens : {1024, 4096, 8192}) {
    if (b.options().quick && tokens != 4096) continue;
    time_movement(b, tokens, 0.3);
    if (tokens == 8192) time_movement(b, tokens, 1.0);
  }
  time_replicas(b);
  K3_CUDA(cudaSetDevice(0));
}

}  // namespace k3sim
