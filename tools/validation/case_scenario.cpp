#include "tools/validation/case_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/validation/printed_text.h"

namespace k3sim {

namespace {

// Number behind a word, for example "FSDP=128" or "(size 8)"; 0 when there is none.
int number_after(const std::string& text, const char* word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return 0;
  const std::size_t digit = text.find_first_of("0123456789", at);
  return digit == std::string::npos ? 0 : std::stoi(text.substr(digit));
}

struct ScheduleAlias {
  const char *text, *name;
  bool folded;  // two chunks per rank in a V
};
constexpr ScheduleAlias kScheduleAliases[] = {
    {"zb-1p", "zb_h1", false},  {"zb-2p", "zb_h2", false}, {"zb-v", "zb_v", true},         {"v-zb", "zb_v", true},
    {"v-half", "v_half", true}, {"v-min", "v_min", true},  {"dualpipe", "dualpipe", false}};

const ScheduleAlias* schedule_alias(const Case& c) {
  const std::string text = lower(c.schedule);
  for (const ScheduleAlias& a : kScheduleAliases)
    if (starts(text, a.text)) return &a;
  return nullptr;
}

class Mapper {
 public:
  explicit Mapper(const Case& c) : c_(c) {}

  CaseScenario map() {
    if (!possible()) return std::move(out_);
    s_.name = c_.id;
    s_.model = case_model(c_);
    cluster();
    if (out_.reason.empty()) parallel();
    if (out_.reason.empty()) batch();
    if (!out_.reason.empty()) return std::move(out_);
    schedule();
    activation();
    optimizer();
    precision();
    moe();
    overlap();
    out_.scenario = std::move(s_);
    return std::move(out_);
  }

 private:
  void refuse(std::string why) { out_.reason = std::move(why); }
  void assume(std::string what) { out_.assumptions.push_back(std::move(what)); }

  bool possible() {
    const CaseModel& m = c_.model;
    if (starts(lower(c_.precision), "nvfp4")) refuse("no measured kernels in NVFP4");
    if (c_.task == "lora") refuse("LoRA fine-tuning is not modelled");
    if (!m.hybrid.empty()) refuse("hybrid architecture (" + m.hybrid + ") is not modelled");
    if (m.note == "single transformer layer timing") refuse("times one layer, not a step");
    if (m.layers == 0 || m.hidden == 0 || m.vocab == 0) refuse("model dimensions are not stated");
    if (!c_.gbs) refuse("global batch size is not stated");
    if (c_.measured.gpu_hours) refuse("whole-run GPU hours, no step time");
    if (c_.measured.iteration_ms && !c_.mbs) refuse("an iteration is one micro-batch of unstated size");
    if (gpu_profile_name(c_.gpu).empty()) refuse("no hardware profile for GPU '" + c_.gpu + "'");
    return out_.reason.empty();
  }

  void cluster() {
    ClusterConfig& k = s_.cluster;
    k.gpu = gpu_profile_name(c_.gpu);
    k.gpus_per_node = std::min(c_.gpus_per_node, c_.gpus);
    if (c_.gpus % k.gpus_per_node != 0)
      return refuse(fmt::format("{} GPUs do not fill nodes of {}", c_.gpus, k.gpus_per_node));
    k.nodes = c_.gpus / k.gpus_per_node;
    k.nic_override = network_per_gpu(c_);
    const bool ethernet = has(c_.internode, "RoCE");
    k.fabric = has(c_.internode, "EFA") ? "efa_400g" : ethernet ? "roce_leaf_spine_400g" : "rail_fat_tree_400g";
    if (k.nodes > 1 && !k.nic_override) assume("inter-node network not stated: 400 Gbit/s per GPU");
    // An NVLink domain of 72: jobs use the largest multiple of four GPUs that divides their size.
    if (has(c_.intranode, "NVL72"))
      for (int n = 72; n >= 4; n -= 4)
        if (c_.gpus % n == 0) {
          k.gpus_per_node = n;
          break;
        }
    k.nodes = c_.gpus / k.gpus_per_node;
    s_.software = software_profile_name(c_);
  }

  void parallel() {
    const CaseParallel& p = c_.parallel;
    ParallelConfig& k = s_.parallel;
    k.tp = p.tp.value_or(1);
    k.pp = p.pp.value_or(1);
    const ScheduleAlias* named = schedule_alias(c_);
    k.vpp = std::max(1, p.vpp.value_or(named && named->folded ? 2 : 1));
    k.cp = p.cp.value_or(1);
    k.ep = p.ep.value_or(1);
    // Expert tensor parallelism equals tensor parallelism unless a source says otherwise (Megatron's default).
    k.etp = p.etp.value_or(c_.model.experts > 0 ? k.tp : 1);
    if (k.pp == 1) k.vpp = 1;
    if (!p.tp || !p.pp) assume("tp or pp not stated: 1");
    const int model_parallel = k.tp * k.pp * k.cp;
    if (c_.gpus % model_parallel != 0)
      return refuse(fmt::format("{} GPUs are not a multiple of tp x pp x cp = {}", c_.gpus, model_parallel));
    k.dp = c_.gpus / model_parallel;
    if (!p.etp && k.tp * k.cp * k.dp % (k.ep * k.etp) != 0) k.etp = 1;
    if (k.tp * k.cp * k.dp % (k.ep * k.etp) != 0)
      return refuse(
          fmt::format("ep {} x etp {} does not divide the {} ranks of a stage", k.ep, k.etp, k.tp * k.cp * k.dp));
    k.sequence_parallel = p.sequence_parallel != "false" && p.sequence_parallel != "False";
    const auto layers = static_cast<int>(s_.model.layers.size());
    // Megatron-Core tables without schedule: its recipes interleave, one layer per chunk where the layers divide.
    const bool silent = !p.vpp && c_.schedule.empty() && starts(c_.framework, "Megatron-Core");
    if (silent && k.pp > 1 && layers % k.pp == 0) {
      k.vpp = layers / k.pp;
      assume(fmt::format("schedule not stated: interleaved with {} chunks per stage", k.vpp));
    }
    if (!p.vpp && k.pp > 1 && starts(lower(c_.schedule), "interleaved")) unnumbered_chunks(layers);
    // Layer counts two below a multiple of the chunks: embedding and head take the place of a layer each.
    if (layers % (k.pp * k.vpp) != 0 || has(c_.model.note, "first and last stage hold one layer fewer"))
      lighter_ends(layers);
    if (c_.framework.rfind("nanotron", 0) == 0 && k.pp > 1 && k.vpp == 1)
      k.stage_layers = nanotron_stage_layers(c_.model, k.pp);
    if (!c_.stage_layers.empty()) k.stage_layers = c_.stage_layers;
    if (k.pp * k.vpp > layers && k.stage_layers.empty())
      return refuse(fmt::format("{} model chunks but {} layers", k.pp * k.vpp, layers));
  }

  // A source that interleaves but does not say how finely. One layer less in the first and in the last stage (Llama 3,
  // section 3.3.2) leaves chunks of one layer; otherwise the fewest chunks that interleave.
  void unnumbered_chunks(int layers) {
    ParallelConfig& k = s_.parallel;
    const bool single = has(c_.schedule, "one layer removed from first and last stage") && (layers + 2) % k.pp == 0;
    k.vpp = single ? (layers + 2) / k.pp : layers % (2 * k.pp) == 0 ? 2 : 1;
    assume(fmt::format("virtual stages not stated: {} chunks per stage", k.vpp));
  }

  void lighter_ends(int layers) {
    ParallelConfig& k = s_.parallel;
    const int chunks = k.pp * k.vpp;
    // Megatron's published layouts of DeepSeek-V3 count its MTP layer too: "Et|(tt|)*30mL" (Megatron-Bridge v0.1.0rc4).
    const bool megatron = has(c_.framework, "Megatron");
    const int mtp = megatron && s_.model.mtp_layers > 0 && (layers + 2) % chunks != 0 ? 1 : 0;
    if ((layers + 2 + mtp) % chunks != 0 || chunks < 2) return;
    k.stage_layers.assign(static_cast<std::size_t>(chunks), (layers + 2 + mtp) / chunks);
    --k.stage_layers.front();
    k.stage_layers.back() -= 1 + mtp;
    if (std::min(k.stage_layers.front(), k.stage_layers.back()) < 0) k.stage_layers.clear();
  }

  void batch() {
    BatchConfig& b = s_.batch;
    b.sequence = c_.model.sequence;
    b.global_sequences = static_cast<std::int64_t>(*c_.gbs);
    const std::int64_t per_replica = b.global_sequences / s_.parallel.dp;
    if (per_replica * s_.parallel.dp != b.global_sequences || per_replica == 0)
      return refuse(fmt::format("global batch {} is not a multiple of dp {}", b.global_sequences, s_.parallel.dp));
    if (c_.mbs) {
      b.micro_batch = static_cast<std::int64_t>(*c_.mbs);
    } else if (c_.grad_accum && *c_.grad_accum > 0) {
      b.micro_batch = std::max<std::int64_t>(1, per_replica / static_cast<std::int64_t>(*c_.grad_accum));
    } else if (s_.parallel.pp == 1 && c_.local_batch) {
      b.micro_batch = static_cast<std::int64_t>(*c_.local_batch);
    } else {
      b.micro_batch = 1;
      assume("micro-batch not stated: 1");
    }
    if (b.micro_batch < 1 || per_replica % b.micro_batch != 0)
      refuse(fmt::format("{} sequences per replica are not a multiple of micro-batch {}", per_replica, b.micro_batch));
  }

  void schedule() {
    if (const ScheduleAlias* named = schedule_alias(c_)) s_.schedule.name = named->name;
    // Vocabulary parallelism splits both tables over the stages and keeps more micro-batches in flight: two with one
    // synchronisation (vocab-1), three with two, half of the stages interlaced (arXiv:2411.05288, sections 4 and 5).
    const std::string method = lower(c_.method);
    s_.parallel.vocabulary_stages = starts(method, "vocab") || starts(method, "interlaced");
    if (starts(method, "vocab")) s_.schedule.extra_warmup = starts(method, "vocab-2") ? 3 : 2;
    if (starts(method, "interlaced")) {
      s_.schedule.extra_warmup = s_.parallel.pp / 2;
      s_.parallel.vocabulary_overlap = false;
    }
    if (starts(method, "redis") && c_.stage_layers.empty()) s_.parallel.partition = "balanced";
    if (s_.parallel.vpp > 1 && s_.schedule.name == "1f1b") s_.schedule.name = "interleaved";
    if (s_.schedule.name.find('v') != std::string::npos && s_.schedule.name != "interleaved") s_.parallel.vpp = 2;
  }

  void activation() {
    ActivationConfig& a = s_.activation;
    const std::string r = lower(c_.recompute);
    if (starts(r, "full") || starts(r, "activation checkpointing on")) {
      a.policy = "full";
    } else if (starts(r, "selective (fraction") || starts(r, "selective (every 2nd")) {
      a.policy = "full";
      a.recompute_fraction = 0.5;
      assume("selective over a fraction of the blocks: every second layer");
    } else if (starts(r, "selective: ") || starts(r, "rmsnorm, mla up")) {
      a.policy = "none";
      modules(r);
    } else if (c_.framework.rfind("torchtitan", 0) == 0 &&
               (has(r, "selective (op level)") || has(r, "selective per-op"))) {
      a.policy = "per_operator";
    } else if (has(r, "maxtext remat") || has(r, "paxml") || has(r, "selective (op level)") ||
               has(r, "selective per-op")) {
      a.recompute = {"norm", "activation"};
      if (has(r, "mlp recomputed") || has(r, "gate/up recomputed") || has(r, "only qkv"))
        a.recompute = {"norm", "activation", "ffn_up"};
    } else if (starts(r, "selective")) {
      a.policy = "selective";
    } else if (r.empty() || starts(r, "not stated")) {
      assume("recompute not stated: none");
    }
  }

  void modules(const std::string& r) {
    std::vector<std::string>& m = s_.activation.recompute;
    if (has(r, "norm")) m.push_back("norm");
    if (has(r, "act") || has(r, "swiglu")) m.insert(m.end(), {"activation", "expert_activation"});
    if (has(r, "mla_up_proj") || has(r, "mla up")) m.push_back("mla_up_proj");
    if (has(r, "mlp")) m.insert(m.end(), {"ffn_up", "activation", "ffn_down"});
    if (has(r, "shared_expert")) m.insert(m.end(), {"shared_up", "shared_activation", "shared_down"});
    if (has(r, ", moe") && !has(r, "moe_act")) m.insert(m.end(), {"dispatch", "expert_up", "expert_activation"});
  }

  void optimizer() {
    OptimizerConfig& o = s_.optimizer;
    const std::string& text = c_.parallel.optimizer;
    const std::string t = lower(text);
    o.zero = 0;
    if (t == "true" || starts(t, "zero-1") || starts(t, "zero-2")) o.zero = 1;
    if (has(t, "fsdp") || has(t, "zero-3") || has(t, "hsdp")) o.zero = 3;
    if (has(t, "shard_grad_op") || has(t, "no reshard")) o.reshard_after_forward = false;
    if (has(t, "zero-0") || has(t, "none")) o.zero = 0;
    if (has(t, "within")) o.shard_group = number_after(t, "within");
    if (has(t, "size ")) o.shard_group = number_after(t, "size ");
    if (has(t, "fsdp=")) o.shard_group = number_after(t, "fsdp=");
    if (starts(t, "hsdp")) o.shard_group = s_.cluster.gpus_per_node;
    o.shard_group = std::min(o.shard_group, s_.parallel.dp * s_.parallel.cp);
    // With pipeline parallelism FSDP keeps parameters gathered and reduces gradients once per step.
    if (o.zero == 3 && s_.parallel.pp > 1) o.zero = 1, o.reshard_after_forward = false;
    // FSDP2 shards the FP32 parameters themselves; there is no other master copy.
    if (has(t, "fsdp2")) o.parameter_bytes = Bytes(4), o.state_bytes = Bytes(8);
    // NeMo's recipes reduce gradients in BF16 (grad_reduce_in_fp32: false): 2 bytes stay in the buffers.
    if (c_.framework.rfind("NeMo/", 0) == 0 || c_.framework.rfind("NeMo 2", 0) == 0) o.gradient_bytes = Bytes(2);
    // So do Megatron-Bridge's performance recipes (scripts/performance/configs, v0.1 to v0.4) and, as its user guide
    // recommends, Megatron FSDP (docs/discussions/megatron-fsdp-user-guide: --grad-reduce-in-bf16).
    if (c_.framework.rfind("Megatron-Bridge", 0) == 0 || has(t, "megatron fsdp")) o.gradient_bytes = Bytes(2);
    // fms-fsdp policies/mixed_precision.py (bfSixteen): gradients are reduced in BF16.
    if (c_.group == "fms-fsdp") o.gradient_bytes = Bytes(2);
    // InternEvo solver/optimizer/hybrid_zero_optim.py: gradients are reduced in the parameters' type.
    if (c_.group == "internevo") o.gradient_bytes = Bytes(2);
    // DeepSpeed's engine all-reduces gradients in their own type, half precision here.
    if (s_.software == "megatron_deepspeed") o.gradient_bytes = Bytes(2);
    if (has(lower(c_.precision), "pure")) o.gradient_bytes = Bytes(2), o.state_bytes = Bytes(4);
    if (text.empty()) assume("optimizer sharding not stated: none");
  }

  void precision() {
    const std::string p = lower(c_.precision);
    PrecisionConfig& k = s_.precision;
    if (starts(p, "mxfp8") || has(p, "fp8-mx"))
      k.compute = "mxfp8";
    else if (has(p, "1x128") || has(p, "blockwise") || has(p, "rowwise"))
      k.compute = "fp8_block";
    else if (starts(p, "fp8"))
      k.compute = "fp8";
    // "Mixed": the scripts of zero-bubble (examples/pretrain_zero_bubble.sh) and vocabulary parallelism
    // (pretrain_gpt.sh) pass --fp16.
    else if (starts(p, "fp16") || p == "bf16/fp16 mixed")
      k.compute = "fp16";
    k.fp8_parameters = has(p, "fp8 params");
  }

  void moe() {
    if (c_.model.experts == 0) return;
    MoeConfig& m = s_.moe;
    if (starts(c_.token_drop, "capacity factor 1") || c_.token_drop == "True" || c_.token_drop == "true")
      m.capacity_factor = 1.0;
    const std::string d = lower(c_.dispatcher);
    const std::string o = lower(c_.overlap + c_.schedule);
    if (has(d, "deepep") || has(d, "hybridep")) m.dispatcher = "deepep";
    if (c_.group == "deepseek-v3" || c_.group == "nemo-automodel") m.dispatcher = "deepep";
    // DeepSeek-V3 report 3.3.2 and the published inference code: FP8 rows go out, router products are BF16.
    if (c_.framework == "HAI-LLM") m.dispatch_precision = "fp8", m.router_precision = "bf16";
    m.overlap_ep = (has(o, "ep overlap") || has(o, "ep all-to-all") || has(o, "all-to-all fully")) && !has(o, "none");
  }

  void overlap() {
    OverlapConfig& k = s_.overlap;
    const std::string o = lower(c_.overlap);
    // A bare "none" speaks of tensor or expert parallelism: FSDP and the distributed optimizer overlap by default.
    const bool none = starts(o, "none for dp") || starts(o, "no dp") || has(o, "no gradient");
    k.tp = has(o, "tp overlap") || has(o, "tp comm overlap") || has(o, "async tp") ||
           (has(o, "tp overlap (userbuffers) on dense") && c_.model.experts == 0);
    if (has(o, "tp overlap (userbuffers) on dense") && c_.model.experts > 0) k.tp = false;
    k.grad_reduce = k.param_gather = !none && s_.optimizer.zero > 0;
    if (s_.optimizer.zero == 0) k.grad_reduce = !none && has(o, "grad");
  }

  const Case& c_;
  CaseScenario out_;
  Scenario s_;
};

}  // namespace

CaseScenario case_scenario(const Case& c) {
  return Mapper(c).map();
}

}  // namespace k3sim
