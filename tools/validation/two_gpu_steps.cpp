#include "tools/validation/two_gpu_steps.h"

#include <algorithm>

#include "models/config/model_loader.h"
#include "models/transformer/modules.h"
#include "tools/validation/eager_timeline.h"

namespace k3sim {

namespace {

CommGroup pair_of_gpus() {
  CommGroup g;
  g.ranks = 2;
  g.nodes = 1;
  g.ranks_per_node = 2;
  return g;
}

}  // namespace

TwoGpuSteps::TwoGpuSteps(const Machine& machine)
    : machine_(machine), llama_(load_model("llama3_8b")), k3_(load_model("kimi_k3")) {}

TwoGpuSteps::BlockTimes TwoGpuSteps::block(std::int64_t tokens) const {
  const LayerProgram p = module_program(llama_, "llama_block", tokens);
  EagerTimeline f(*machine_.cost, machine_.software.host_launch), b(*machine_.cost, machine_.software.host_launch);
  f.run(p.forward);
  b.run(p.backward);
  return {f.now(), b.now()};
}

Time TwoGpuSteps::collective(Collective kind, double bytes) const {
  return collective_time(machine_.comm, kind, Bytes::ceil(bytes), pair_of_gpus()).time;
}

Time TwoGpuSteps::exchange(double bytes, bool both_ways) const {
  // Both directions at once reach 0.97 of one direction's rate (360 of 370 GB/s, hardware notes 1.4).
  const Time one = collective(Collective::send_recv, bytes);
  return machine_.comm.eager_issue + (both_ways ? scale(one, 370.0 / 360.0) : one);
}

Time TwoGpuSteps::copy_of(double bytes) const {
  return machine_.cost->time(memory_kernel("copy", Pass::forward, MemoryClass::copy, Bytes::ceil(2.0 * bytes))).time;
}

double TwoGpuSteps::block_parameters() const {
  return static_cast<double>(module_parameters(llama_, "llama_block"));
}

double TwoGpuSteps::activation_bytes(std::int64_t tokens) const {
  return 2.0 * static_cast<double>(llama_.hidden * tokens);
}

Time TwoGpuSteps::contention(Time communication) const {
  return scale(communication, machine_.software.compute_slowdown - 1.0);
}

TwoGpuStep TwoGpuSteps::stage_alone(int layers, std::int64_t tokens) const {
  const BlockTimes t = block(tokens);
  TwoGpuStep out;
  out.seconds = (layers * (t.forward + t.backward)).seconds();
  ModuleOptions options;
  options.first_gradients = true;
  const std::vector<std::string> chain(static_cast<std::size_t>(layers), "llama_block");
  const double base = 2.0 * layers * block_parameters() + 4.0 * activation_bytes(tokens);
  out.peak_bytes[0] = out.peak_bytes[1] = base + chain_peak_growth(llama_, chain, tokens, options).as_double();
  return out;
}

TwoGpuStep TwoGpuSteps::pipeline(int layers, int microbatches, std::int64_t tokens) const {
  const BlockTimes t = block(tokens);
  const Time f = layers * t.forward, b = layers * t.backward;
  const double bytes = activation_bytes(tokens);
  Time rank0 = f, rank1;
  Time arrived = rank0 + exchange(bytes, false);  // the first activation travels alone
  rank0 = rank1 = arrived;
  for (int i = 0; i < microbatches; ++i) {
    const bool more = i + 1 < microbatches;
    if (more) rank0 += f;
    rank1 += f + b;
    arrived = std::max(rank0, rank1) + exchange(bytes, more);
    rank0 = arrived + b;
    rank1 = arrived;
  }
  TwoGpuStep out;
  out.seconds = std::max(rank0, rank1).seconds();
  // Weight gradients accumulate over the micro-batches, so that all of them are there at the peak.
  const std::vector<std::string> chain(static_cast<std::size_t>(layers), "llama_block");
  const Bytes one = chain_peak_growth(llama_, chain, tokens, {});
  // Buffers the test holds: one activation per micro-batch and two more (measurements README).
  const double base = 2.0 * layers * block_parameters() + (microbatches + 2) * bytes;
  Bytes kept;
  const LayerProgram p = module_program(llama_, "llama_block", tokens);
  for (const SavedTensor& s : p.saved) kept += s.bytes;
  // Rank 0 keeps two micro-batches and each holds its received or sent activation.
  out.peak_bytes[1] = base + one.as_double() + bytes;
  out.peak_bytes[0] = base + one.as_double() + static_cast<double>(layers) * kept.as_double() + 2 * bytes;
  return out;
}

TwoGpuStep TwoGpuSteps::ddp(int layers, std::int64_t tokens, double bucket_bytes) const {
  const BlockTimes t = block(tokens);
  const double gradients = 2.0 * layers * block_parameters();
  const int buckets = std::max(1, static_cast<int>(gradients / bucket_bytes + 0.5));
  const Time one = collective(Collective::all_reduce, gradients / buckets);
  const Time forward = layers * t.forward;
  // Gradients are scaled into their bucket as they come, and copied out of it once all buckets are reduced.
  const Time bucket_copy = copy_of(gradients / buckets);
  Time compute = forward, comm;
  for (int i = 0; i < buckets; ++i) {
    compute += scale(layers * t.backward, 1.0 / buckets) + bucket_copy + (i > 0 ? contention(one) : Time());
    comm = std::max(comm, compute) + one;
  }
  TwoGpuStep out;
  out.seconds = (std::max(compute, comm) + copy_of(gradients)).seconds();
  const std::vector<std::string> chain(static_cast<std::size_t>(layers), "llama_block");
  const double base = 2.0 * layers * block_parameters() + 2.0 * activation_bytes(tokens);
  // All gradients are alive: they live in the buckets.
  out.peak_bytes[0] = out.peak_bytes[1] = base + chain_peak_growth(llama_, chain, tokens, {}).as_double();
  return out;
}

TwoGpuStep TwoGpuSteps::fsdp(int layers, std::int64_t tokens) const {
  const BlockTimes t = block(tokens);
  const double parameters = 2.0 * block_parameters();
  const Time gather = collective(Collective::all_gather, parameters);
  const Time reduce = collective(Collective::reduce_scatter, parameters);
  // Gathered shards are copied out into the parameters, gradients chunk by chunk into the reduction's input, both on
  // the compute stream (two H200, 2026-11-30: 238 and 269 us for blocks of 436 MB).
  const Time copied = copy_of(parameters);
  // The next block is gathered while this one computes; the first gather is exposed, the last reduction too.
  Time gathered = gather, compute, reduced;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < layers; ++i) {
      const Time start = std::max(compute, gathered);
      gathered = std::max(gathered, start) + gather;
      const Time beside = pass == 0 ? gather : gather + reduce;
      compute = start + (pass == 0 ? t.forward : t.backward + copied) + copied + contention(beside);
      if (pass == 1) reduced = std::max(reduced, compute) + reduce;
    }
  TwoGpuStep out;
  out.seconds = std::max(compute, reduced).seconds();
  const std::vector<std::string> chain(static_cast<std::size_t>(layers), "llama_block");
  // Half of the parameters and two gathered blocks; gradients appear block by block and stay as halves.
  ModuleOptions options;
  options.first_gradients = true;
  const double states = layers * parameters / 2 + 2.0 * parameters;
  out.peak_bytes[0] = out.peak_bytes[1] =
      states + 2.0 * activation_bytes(tokens) + chain_peak_growth(llama_, chain, tokens, options).as_double();
  return out;
}

TwoGpuStep TwoGpuSteps::expert_parallel(std::int64_t tokens) const {
  const LayerProgram p = module_program(k3_, "ep2_latent_moe", tokens);
  EagerTimeline t(*machine_.cost, machine_.software.host_launch);
  for (const std::vector<Item>* items : {&p.forward, &p.backward})
    for (const Item& item : *items) {
      if (item.is_comm)
        t.add(collective(Collective::all_to_all, item.comm.bytes.as_double()) + machine_.comm.eager_issue);
      else
        t.run(item.kernel);
    }
  TwoGpuStep out;
  out.seconds = t.now().seconds();
  const double base = 2.0 * static_cast<double>(module_parameters(k3_, "ep2_latent_moe")) +
                      2.0 * 2.0 * static_cast<double>(k3_.hidden * tokens);
  out.peak_bytes[0] = out.peak_bytes[1] = base + chain_peak_growth(k3_, {"ep2_latent_moe"}, tokens).as_double();
  return out;
}

}  // namespace k3sim
