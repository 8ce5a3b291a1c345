// Source: product-spec section 3; the meaning of each setting is documented with its code in models/.
#include "models/config/field_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "sim/base/units_text.h"

namespace k3sim {

#define K3SIM_AT(member)      \
  [](Scenario & s) -> auto& { \
    return s.member;          \
  }

namespace {

using Fields = std::vector<Field>;

Field words(std::string path, FieldRef ref, std::string description, std::vector<std::string> choices) {
  Field field{std::move(path), ref, std::move(description)};
  field.choices = std::move(choices);
  return field;
}

Field profile(std::string path, FieldRef ref, std::string description, std::string folder) {
  Field field{std::move(path), ref, std::move(description)};
  field.folder = std::move(folder);
  return field;
}

Fields top_fields() {
  return {
      {"name", K3SIM_AT(name), "name shown in reports; default: the scenario's folder"},
      profile("software", K3SIM_AT(software), "calibrated constants of a framework release",
              "hardware_profiles/software"),
      {"mtp", K3SIM_AT(mtp), "train the model's multi-token-prediction layers, if any"},
  };
}

Fields cluster_fields() {
  return {
      profile("cluster.gpu", K3SIM_AT(cluster.gpu), "GPU profile", "hardware_profiles/gpu"),
      {"cluster.nodes", K3SIM_AT(cluster.nodes), "number of nodes", 1, 1e6, "nodes"},
      {"cluster.gpus_per_node", K3SIM_AT(cluster.gpus_per_node), "GPUs in one node", 1, 1024, "GPUs"},
      profile("cluster.node", K3SIM_AT(cluster.node), "node profile", "hardware_profiles/node"),
      profile("cluster.fabric", K3SIM_AT(cluster.fabric), "network profile", "hardware_profiles/fabric"),
      {"cluster.oversubscription", K3SIM_AT(cluster.oversubscription),
       "leaf down-link bandwidth over up-link bandwidth", 1, 64},
      {"cluster.nic_override", K3SIM_AT(cluster.nic_override),
       "payload bandwidth per GPU and direction, when it differs from the fabric profile", 1},
      {"cluster.memory_override", K3SIM_AT(cluster.memory_override),
       "usable GPU memory, when it differs from the GPU profile", 1},
      {"cluster.price_per_gpu_hour", K3SIM_AT(cluster.price_per_gpu_hour), "USD; 0: the profile's price", 0, 1e4},
  };
}

Fields parallel_fields() {
  return {
      {"parallel.tp", K3SIM_AT(parallel.tp), "tensor parallelism", 1, 1024},
      {"parallel.pp", K3SIM_AT(parallel.pp), "pipeline stages", 1, 4096},
      {"parallel.vpp", K3SIM_AT(parallel.vpp), "model chunks per pipeline rank", 1, 256},
      {"parallel.cp", K3SIM_AT(parallel.cp), "context parallelism", 1, 4096},
      {"parallel.ep", K3SIM_AT(parallel.ep), "expert parallelism", 1, 1e5},
      {"parallel.etp", K3SIM_AT(parallel.etp), "tensor parallelism inside an expert", 1, 1024},
      {"parallel.dp", K3SIM_AT(parallel.dp), "data parallelism; auto: GPUs / (tp pp cp)", 1, 1e6, "", "auto"},
      {"parallel.sequence_parallel", K3SIM_AT(parallel.sequence_parallel),
       "split norms and residuals over the tensor-parallel ranks (with tp > 1)"},
      {"parallel.order", K3SIM_AT(parallel.order), "rank order, fastest first: tp, cp, ep, dp, pp joined by '-'"},
      {"parallel.stage_layers", K3SIM_AT(parallel.stage_layers),
       "decoder layers of each of the pp x vpp model chunks; absent: as even as possible", 0},
      {"parallel.vocabulary_stages", K3SIM_AT(parallel.vocabulary_stages),
       "embedding and output layer are split over the pipeline stages (vocabulary parallelism)"},
      {"parallel.vocabulary_overlap", K3SIM_AT(parallel.vocabulary_overlap),
       "with vocabulary_stages: their collectives run beside compute, paid for by schedule.extra_warmup; false: every "
       "rank waits for them (interlaced)"},
      words("parallel.cp_method", K3SIM_AT(parallel.cp_method), "context-parallel attention",
            {"auto", "ring", "all_gather", "all_to_all", "kcp", "kcp_scan"}),
      words("parallel.kda_exchange", K3SIM_AT(parallel.kda_exchange),
            "what context-parallel KDA layers exchange: every rank's state, a prefix scan of them, or heads for rows; "
            "auto: by cp_method",
            {"auto", "all_gather", "prefix_scan", "all_to_all"}),
      words("parallel.mla_exchange", K3SIM_AT(parallel.mla_exchange),
            "what context-parallel MLA layers exchange: latents, expanded keys and values, a ring of those, or heads "
            "for rows; auto: by cp_method",
            {"auto", "latent", "expanded", "ring", "all_to_all"}),
      words("parallel.cp_slices", K3SIM_AT(parallel.cp_slices),
            "slices of a sequence on the context-parallel ranks; auto: contiguous with KDA, else zigzag",
            {"auto", "contiguous", "zigzag"}),
      words(
          "parallel.partition", K3SIM_AT(parallel.partition),
          "layers per chunk without stage_layers: equal when they divide; balanced on time, memory and boundaries; or "
          "whole blocks of attention residuals",
          {"even", "balanced", "blocks"}),
      {"parallel.kda_segments", K3SIM_AT(parallel.kda_segments),
       "pieces of the KDA core's serial chains inside one GPU; auto: as many as pay", 1, 4096, "", "auto"},
  };
}

Fields batch_fields() {
  return {
      {"batch.sequence", K3SIM_AT(batch.sequence), "tokens per sequence", 1, 1e9, "tokens"},
      {"batch.micro_batch", K3SIM_AT(batch.micro_batch), "sequences per micro-batch", 1, 1e6, "sequences"},
      {"batch.global_tokens", K3SIM_AT(batch.global_tokens),
       "tokens per optimizer step; either this or global_sequences", 1, 1e12, "tokens"},
      {"batch.global_sequences", K3SIM_AT(batch.global_sequences),
       "sequences per optimizer step; either this or global_tokens", 1, 1e9, "sequences"},
      {"batch.documents", K3SIM_AT(batch.documents),
       "lengths of the documents packed into one sequence; absent: one document", 1},
  };
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleChoice& choice : schedule_choices()) names.push_back(choice.name);
  return names;
}

Fields schedule_fields() {
  return {
      words("schedule.name", K3SIM_AT(schedule.name), "pipeline schedule", schedule_names()),
      {"schedule.file", K3SIM_AT(schedule.file), "a PyTorch schedule CSV instead of a name; relative to the scenario"},
      {"schedule.extra_warmup", K3SIM_AT(schedule.extra_warmup),
       "forwards before the first backward beyond the usual number", 0, 1e6},
      {"schedule.split_wgrad", K3SIM_AT(schedule.split_wgrad), "weight gradients as a block of their own"},
      {"schedule.slices", K3SIM_AT(schedule.slices), "seq1f1b: pieces of every sequence", 1, 1024},
      {"schedule.memory_limit", K3SIM_AT(schedule.memory_limit),
       "automatic: activations per rank, in micro-batches of the rank's layers; 0: no limit", 0, 1e6},
  };
}

Fields moe_fields() {
  return {
      words("moe.dispatcher", K3SIM_AT(moe.dispatcher), "how tokens reach their experts",
            {"alltoall", "allgather", "deepep", "deepep_v2", "copy_free", "moonep", "moonep_tolerance",
             "moonep_hierarchical", "eplb"}),
      {"moe.capacity_factor", K3SIM_AT(moe.capacity_factor),
       "drop tokens above this multiple of the balanced load; 0: drop none", 0, 1e3},
      {"moe.tolerance", K3SIM_AT(moe.tolerance),
       "moonep_tolerance: no rows move while the hottest rank is within this share of its cap", 0, 10},
      {"moe.redundant_experts", K3SIM_AT(moe.redundant_experts), "eplb: extra expert slots of every rank", 1, 64},
      words("moe.expert_width", K3SIM_AT(moe.expert_width),
            "LatentMoE as the model has it, or experts of the model's full width: hidden / latent times fewer experts "
            "and choices, so that parameters, FLOPs and values sent per token stay",
            {"latent", "full"}),
      words("moe.grouped_gemm", K3SIM_AT(moe.grouped_gemm),
            "launch parameters of the expert products: by a fixed rule, or chosen from the counts by the cost model",
            {"fixed", "workload_aware"}),
      words("moe.balancing", K3SIM_AT(moe.balancing),
            "how the router is balanced: what its statistics cost per step (`k3sim balancing` compares the loads)",
            {"none", "quantile", "fixed_step", "auxiliary_loss"}),
      {"moe.overlap_shared", K3SIM_AT(moe.overlap_shared), "shared experts run beside dispatch and combine"},
      {"moe.overlap_ep", K3SIM_AT(moe.overlap_ep), "expert communication hidden behind another micro-batch"},
      words("moe.dispatch_precision", K3SIM_AT(moe.dispatch_precision),
            "rows on their way to the experts, and the gradients of combined rows", {"bf16", "fp8"}),
      words("moe.router_precision", K3SIM_AT(moe.router_precision), "the router's matrix products", {"fp32", "bf16"}),
      words("moe.routing.source", K3SIM_AT(moe.routing.source),
            "where tokens go; default: lognormal when skew_sigma is above 0, else balanced",
            {"balanced", "lognormal", "dirichlet", "file"}),
      {"moe.routing.skew_sigma", K3SIM_AT(moe.routing.skew_sigma),
       "spread of the experts' popularity, fresh in every micro-batch and layer (sigma of its logarithm)", 0, 10},
      {"moe.routing.layer_sigma", K3SIM_AT(moe.routing.layer_sigma),
       "lasting spread of a layer's experts, the same in every micro-batch: what balancing leaves", 0, 10},
      words("moe.routing.correlation", K3SIM_AT(moe.routing.correlation), "whether ranks draw their popularity apart",
            {"independent", "rank"}),
      {"moe.routing.seed", K3SIM_AT(moe.routing.seed), "random seed"},
      {"moe.routing.file", K3SIM_AT(moe.routing.file),
       "CSV layer,micro_batch,rank,expert,tokens (the first two may be absent); needs source: file; relative to the "
       "scenario"},
  };
}

Fields activation_fields() {
  return {
      words("activation.policy", K3SIM_AT(activation.policy), "what is kept for the backward",
            {"none", "keep_all", "selective", "per_operator", "full", "full_recompute", "unified", "k3_unified", "k2",
             "auto"}),
      {"activation.recompute", K3SIM_AT(activation.recompute), "modules recomputed besides the policy's"},
      {"activation.recompute_layers", K3SIM_AT(activation.recompute_layers),
       "only so many layers of each chunk are recomputed; 0: all", 0, 1e5},
      {"activation.recompute_fraction", K3SIM_AT(activation.recompute_fraction),
       "share of the layers that the policy applies to", 0, 1},
      {"activation.offload", K3SIM_AT(activation.offload), "everything kept goes to host memory"},
      {"activation.forbid", K3SIM_AT(activation.forbid),
       "what the policy must not use: fp8, offload, remote_offload, recompute"},
      {"activation.tensors", K3SIM_AT(activation.tensors),
       "treatment of saved tensors by name, over the policy; the last matching rule wins"},
  };
}

Fields memory_fields() {
  return {
      words("memory.allocator", K3SIM_AT(memory.allocator),
            "caching allocator: as the software stack sets it, or one of its two segment policies",
            {"stack", "default", "expandable"}),
      {"memory.conf", K3SIM_AT(memory.conf), "PYTORCH_ALLOC_CONF of the job, for example max_split_size_mb:256"},
  };
}

Fields optimizer_fields() {
  return {
      words("optimizer.name", K3SIM_AT(optimizer.name), "optimizer; none: no optimizer step",
            {"adamw", "muon", "muon_per_head", "none"}),
      {"optimizer.zero", K3SIM_AT(optimizer.zero), "ZeRO stage: what data-parallel ranks share; 3 is FSDP full shard",
       0, 3},
      {"optimizer.shard_group", K3SIM_AT(optimizer.shard_group),
       "data-parallel ranks that share a shard; all: every one", 1, 1e6, "", "all"},
      {"optimizer.reshard_after_forward", K3SIM_AT(optimizer.reshard_after_forward),
       "zero 3: gather the parameters again in the backward"},
      words("optimizer.gradient_shards", K3SIM_AT(optimizer.gradient_shards), "where gradient shards are accumulated",
            {"gpu", "cpu"}),
      words("optimizer.states", K3SIM_AT(optimizer.states), "where optimizer states live", {"gpu", "cpu"}),
      words("optimizer.muon_fetch", K3SIM_AT(optimizer.muon_fetch),
            "Muon gets whole matrices out of shards point to point by their owner, or by gathering all of them",
            {"owned", "gather"}),
      {"optimizer.parameter_bytes", K3SIM_AT(optimizer.parameter_bytes), "working copy of one parameter", 1, 8},
      {"optimizer.gradient_bytes", K3SIM_AT(optimizer.gradient_bytes), "gradient of one parameter", 0, 8},
      {"optimizer.state_bytes", K3SIM_AT(optimizer.state_bytes),
       "optimizer state of one parameter, FP32 master copy included", 0, 64},
  };
}

Fields overlap_and_precision_fields() {
  return {
      {"overlap.grad_reduce", K3SIM_AT(overlap.grad_reduce), "gradient reduction beside the backward"},
      {"overlap.param_gather", K3SIM_AT(overlap.param_gather), "parameter gathering beside the forward"},
      {"overlap.tp", K3SIM_AT(overlap.tp), "tensor-parallel collectives beside their matrix multiplications"},
      {"overlap.p2p", K3SIM_AT(overlap.p2p), "pipeline sends beside compute"},
      words("precision.compute", K3SIM_AT(precision.compute), "number format of the matrix multiplications",
            {"bf16", "fp16", "fp8", "fp8_block", "mxfp8", "nvfp4"}),
      words("precision.qat", K3SIM_AT(precision.qat),
            "quantisation-aware training of the routed experts: MXFP4 weights and MXFP8 inputs",
            {"none", "mxfp4_mxfp8"}),
      {"precision.fp8_parameters", K3SIM_AT(precision.fp8_parameters), "parameters are gathered in FP8"},
  };
}

Fields attnres_fields() {
  return {
      words("attnres.pipeline", K3SIM_AT(attnres.pipeline),
            "block rows between stages: only those the receiver has not seen, or all of them", {"cached", "naive"}),
      words("attnres.mixes", K3SIM_AT(attnres.mixes), "mixes of block rows are rebuilt in the backward or kept",
            {"checkpointed", "saved"}),
  };
}

Fields network_fields() {
  return {
      words("network.mode", K3SIM_AT(network.mode),
            "kernel detail: communication and copies share links as flows, or every one has an empty network",
            {"flows", "closed_form"}),
      {"network.faults", K3SIM_AT(network.faults),
       "slower or missing links, as \"n3.nic5>leaf5=0.5\" (names as in `k3sim topology show --links`)"},
  };
}

Fields vision_fields() {
  return {
      words("vision.placement", K3SIM_AT(vision.placement),
            "where the vision encoder runs: nowhere (text only), on the first stage, for the whole batch before and "
            "after the language model, or in pipeline bubbles",
            {"none", "stage0", "decoupled", "bubbles"}),
      {"vision.images_per_sequence", K3SIM_AT(vision.images_per_sequence), "mean number of images in a sequence", 0,
       500},
      {"vision.image_patches", K3SIM_AT(vision.image_patches), "median patches of an image", 64, 1e6, "patches"},
      {"vision.size_sigma", K3SIM_AT(vision.size_sigma), "spread of the image sizes (sigma of the logarithm)", 0, 5},
      {"vision.largest_image", K3SIM_AT(vision.largest_image), "patches of the largest image", 64, 1e7, "patches"},
      {"vision.piece", K3SIM_AT(vision.piece), "patches that go through the encoder at once", 64, 1e7, "patches"},
      {"vision.group", K3SIM_AT(vision.group),
       "ranks that pool their images; large ones are split over sub-groups of them", 1, 1024},
      {"vision.seed", K3SIM_AT(vision.seed), "random seed of image numbers and sizes"},
  };
}

std::string text_of(bool v) {
  return v ? "true" : "false";
}
std::string text_of(const std::string& v) {
  return v;
}
std::string text_of(Bytes v) {
  return to_text(v);
}
template <class T>
std::string text_of(const std::optional<T>& v) {
  return v ? to_text(*v) : std::string();
}
std::string text_of(const std::vector<TensorRule>&) {
  return {};
}
template <class T>
std::string text_of(const std::vector<T>& v) {
  return v.empty() ? std::string() : fmt::format("[{}]", fmt::join(v, ", "));
}
template <class T>
std::string text_of(const T& v) {
  return fmt::format("{}", v);
}

}  // namespace

#undef K3SIM_AT

const std::vector<ScheduleChoice>& schedule_choices() {
  static const std::vector<ScheduleChoice> kChoices = {
      {"gpipe", 1, false, false},      {"1f1b", 0, true, false},     {"interleaved", 0, true, false},
      {"looped_bfs", 0, false, false}, {"zb_h1", 1, true, true},     {"zb_h2", 1, true, true},
      {"zb_v", 2, false, true},        {"v_half", 2, false, true},   {"v_min", 2, false, true},
      {"hanayo", 0, false, false},     {"dualpipe", 1, false, true}, {"dualpipe_v", 2, false, true},
      {"bpipe", 1, false, false},      {"seq1f1b", 1, true, false},  {"k3", 0, true, true},
      {"automatic", 0, false, true}};
  return kChoices;
}

const std::vector<std::string>& tensor_policies() {
  static const std::vector<std::string> kPolicies = {
      "keep", "recompute", "fp8", "offload", "remote_offload", "fp8+offload", "fp8+remote_offload"};
  return kPolicies;
}

const std::vector<Field>& scenario_fields() {
  static const std::vector<Field> kFields = [] {
    Fields all;
    for (Fields (*section)() : {top_fields, cluster_fields, parallel_fields, batch_fields, schedule_fields, moe_fields,
                                activation_fields, memory_fields, optimizer_fields, overlap_and_precision_fields,
                                attnres_fields, network_fields, vision_fields}) {
      Fields fields = section();
      std::move(fields.begin(), fields.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kFields;
}

std::string default_text(const Field& field) {
  Scenario scenario;
  const std::string text = std::visit([&](auto member) { return text_of(member(scenario)); }, field.ref);
  return text == "0" && !field.zero_word.empty() ? field.zero_word : text;
}

}  // namespace k3sim
