// One training step to predict: model, cluster, parallel layout, batch, schedule and policies, as read from
// scenario.yaml (product spec section 3). Plain data; defaults here are the documented defaults. The loader
// (scenario_loader.h) fills and checks it from one field table, from which `k3sim schema` is generated as well. Source:
// product-spec section 3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config/model_spec.h"
#include "sim/base/units.h"

namespace k3sim {

struct ClusterConfig {
  std::string gpu = "h100_sxm";  // hardware_profiles/gpu/NAME.yaml
  int nodes = 1;
  int gpus_per_node = 8;
  std::string node = "hgx8";                  // hardware_profiles/node/NAME.yaml
  std::string fabric = "rail_fat_tree_400g";  // hardware_profiles/fabric/NAME.yaml
  double oversubscription = 1.0;
  std::optional<Bandwidth> nic_override;  // payload per GPU and direction, when a cluster differs from the fabric file
  std::optional<Bytes> memory_override;   // usable HBM
  double price_per_gpu_hour = 0;          // USD; 0 = profile default
  int gpus() const { return nodes * gpus_per_node; }
};

struct ParallelConfig {
  int tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1;
  int dp = 0;                     // 0 = auto: gpus / (tp pp cp)
  bool sequence_parallel = true;  // with tp > 1
  std::string order = "tp-cp-ep-dp-pp";
  std::vector<int> stage_layers;   // decoder layers of each of the pp*vpp model chunks; empty = as even as possible
  bool vocabulary_stages = false;  // embedding and output layer are split over the pipeline stages
  bool vocabulary_overlap = true;  // with them: their collectives run beside compute (extra_warmup pays the barriers)
  std::string cp_method = "auto";  // auto | ring | all_gather | all_to_all | kcp | kcp_scan
  std::string kda_exchange = "auto";  // auto (by cp_method) | all_gather | prefix_scan | all_to_all
  std::string mla_exchange = "auto";  // auto (by cp_method) | latent | expanded | ring | all_to_all
  std::string cp_slices = "auto";     // auto | contiguous | zigzag; auto: contiguous when the model has KDA
  std::string partition = "even";     // even | balanced | blocks: how layers are cut into chunks without stage_layers
  int kda_segments = 1;               // pieces of the KDA core's serial chains inside one GPU; 0 = as many as pay
};

struct BatchConfig {
  std::int64_t sequence = 4096;    // tokens per sequence
  std::int64_t micro_batch = 1;    // sequences
  std::int64_t global_tokens = 0;  // per optimizer step; exactly one of global_tokens and global_sequences
  std::int64_t global_sequences = 0;
  std::vector<std::int64_t> documents;  // lengths packed into one sequence; empty = one document per sequence
};

struct ScheduleConfig {
  std::string name = "1f1b";  // models/schedule registry; 1f1b with vpp > 1 means interleaved
  std::string file;           // a PyTorch schedule CSV instead of a name
  int extra_warmup = 0;
  bool split_wgrad = false;
  int slices = 2;           // seq1f1b: pieces of every sequence
  double memory_limit = 0;  // automatic: activations per rank, in micro-batches of the rank's layers; 0: no limit
};

struct RoutingConfig {
  std::string source = "balanced";  // balanced | lognormal | dirichlet | file
  double skew_sigma = 0;            // fresh in every micro-batch of every layer
  double layer_sigma = 0;           // lasting popularity of a layer's experts: what router balancing leaves of it
  std::string correlation = "independent";  // independent | rank
  std::uint64_t seed = 1;
  std::string file;
  bool operator==(const RoutingConfig&) const = default;
};

struct MoeConfig {
  std::string dispatcher = "alltoall";  // names of models/moe/dispatcher.h; capacity_factor drops
  double capacity_factor = 0;           // > 0: drop tokens above the capacity
  double tolerance = 0.05;              // moonep_tolerance: no rows move while the hottest rank is within this
  int redundant_experts = 1;            // eplb: extra expert slots of every rank
  std::string expert_width =
      "latent";                        // latent | full: LatentMoE, or as many parameters and FLOPs at the model's width
  std::string grouped_gemm = "fixed";  // fixed | workload_aware: launch parameters of the expert products
  std::string balancing = "none";      // none | quantile | fixed_step | auxiliary_loss: what the router exchanges
  bool overlap_shared = false;         // shared experts on a side stream beside dispatch and combine
  bool overlap_ep = false;             // EP communication hidden behind another micro-batch (1F1B pairing)
  std::string dispatch_precision = "bf16";  // bf16 | fp8: rows to the experts, gradients of the combined rows
  std::string router_precision = "fp32";    // fp32 | bf16: the router's products
  RoutingConfig routing;
  bool operator==(const MoeConfig&) const = default;
};

// What happens to saved tensors of that name; '*' stands for any text.
struct TensorRule {
  std::string match;
  std::string policy;  // names of models/memory/storage_rules.h
};

struct ActivationConfig {
  std::string policy = "none";         // none | selective | full | unified ...; presets in models/memory
  std::vector<std::string> recompute;  // modules recomputed besides the preset (names of models/transformer Module)
  int recompute_layers = 0;            // > 0: only that many layers per chunk are recomputed fully (block method)
  double recompute_fraction = 1.0;     // share of layers the policy applies to
  bool offload = false;                // everything kept goes to host memory
  std::vector<std::string> forbid;     // of fp8, offload, remote_offload, recompute: what presets and auto must not use
  std::vector<TensorRule> tensors;     // by tensor name, over all of the above; the last match wins
};

struct OptimizerConfig {
  std::string name = "adamw";           // adamw | muon | muon_per_head | none
  int zero = 1;                         // 0..3; 3 = FSDP full shard
  int shard_group = 0;                  // data-parallel ranks that share a shard; 0 = all (HSDP when smaller)
  bool reshard_after_forward = true;    // zero 3: gather parameters again in backward
  std::string gradient_shards = "gpu";  // gpu | cpu (pipeline ZeRO-2)
  std::string states = "gpu";           // gpu | cpu
  std::string muon_fetch = "owned";     // owned | gather: how an owner gets whole matrices out of shards
  Bytes parameter_bytes{2}, gradient_bytes{4}, state_bytes{12};  // per parameter; state includes the FP32 master
};

struct AttnresConfig {
  std::string pipeline = "cached";     // cached | naive: what a stage boundary carries of the block rows
  std::string mixes = "checkpointed";  // checkpointed | saved: whether backward mixes again
};

// Images in the sequences and where the model's vision encoder runs (models/build/vision_schedule.h).
struct VisionConfig {
  std::string placement = "none";      // none | stage0 | decoupled | bubbles
  double images_per_sequence = 4;      // mean of a Poisson law
  std::int64_t image_patches = 1024;   // median of a log-normal law ...
  double size_sigma = 0.7;             // ... spread of its logarithm ...
  std::int64_t largest_image = 16384;  // ... and the most patches
  std::int64_t piece = 4096;           // patches that go through the encoder at once
  int group = 1;                       // ranks that pool their images; large images are split over sub-groups of them
  std::uint64_t seed = 1;
};

struct OverlapConfig {
  bool grad_reduce = true;
  bool param_gather = true;
  bool tp = false;  // ring-exchange GEMM overlap of tensor-parallel collectives
  bool p2p = true;  // pipeline sends beside compute
};

struct PrecisionConfig {
  std::string compute = "bf16";  // bf16 | fp16 | fp8 | fp8_block | mxfp8 | nvfp4
  std::string qat = "none";      // none | mxfp4_mxfp8: routed experts trained through quantised weights and inputs
  bool fp8_parameters = false;
};

struct MemoryConfig {
  std::string allocator = "stack";  // stack: as the software stack sets it | default | expandable
  std::string conf;                 // PYTORCH_ALLOC_CONF, for example "max_split_size_mb:256"; empty: the stack's
};

struct NetworkConfig {
  std::string mode = "flows";       // flows | closed_form: communication shares links, or has an empty network
  std::vector<std::string> faults;  // "LINK=FACTOR": degraded (or, with 0, missing) links; names as in `topology show`
};

struct Scenario {
  std::string file;  // where it came from; empty when built in code
  std::string text;  // the YAML after overrides, for the report and the digest
  std::string name;
  ModelSpec model;
  ClusterConfig cluster;
  ParallelConfig parallel;
  BatchConfig batch;
  ScheduleConfig schedule;
  MoeConfig moe;
  ActivationConfig activation;
  OptimizerConfig optimizer;
  OverlapConfig overlap;
  PrecisionConfig precision;
  MemoryConfig memory;
  AttnresConfig attnres;
  NetworkConfig network;
  VisionConfig vision;
  std::string software = "default";  // hardware_profiles/software/NAME.yaml
  bool mtp = true;                   // train the model's MTP layers when it has any
};

}  // namespace k3sim
