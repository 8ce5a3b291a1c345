// Megatron-type arguments -> scenario. Differences that have no counterpart become notes.
// Source: Megatron-LM megatron/training/arguments.py and megatron/core/model_parallel_config.py; DeepSpeed ZeRO stages;
// product-spec section 3.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/config/model_kinds.h"
#include "sim/base/error.h"
#include "tools/import/imported_scenario.h"
#include "tools/import/pipeline_layout.h"

namespace k3sim {
namespace {

int small(std::int64_t v) {
  return static_cast<int>(std::clamp<std::int64_t>(v, 0, 1'000'000));
}

class ScenarioReader {
 public:
  ScenarioReader(LaunchArguments& a, ImportedScenario& out) : a_(a), out_(out), s_(out.scenario) {}

  void read() {
    s_.model = model_of_launch(a_, out_.notes);
    parallel();
    batch();
    stages();
    experts();
    activation();
    precision();
    optimizer();
    overlap();
    s_.mtp = s_.model.mtp_layers > 0;
    s_.software = a_.origin == "deepspeed" ? "megatron_deepspeed"
                  : a_.origin == "nemo"    ? "megatron_core_2024"
                                           : "megatron_core_2025";
  }

 private:
  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void parallel() {
    ParallelConfig& p = s_.parallel;
    p.tp = small(a_.integer({"tensor-model-parallel-size", "model-parallel-size"}, 1));
    p.pp = small(a_.integer({"pipeline-model-parallel-size"}, 1));
    if (a_.flag({"no-pipeline-parallel"})) p.pp = 1;
    p.cp = small(a_.integer({"context-parallel-size"}, 1));
    if (const std::int64_t ulysses = a_.integer({"ds-sequence-parallel-size"}, 1); ulysses > 1) {
      p.cp = small(ulysses);
      p.cp_method = "all_to_all";
    }
    p.ep = small(a_.integer({"expert-model-parallel-size", "moe-expert-parallel-size"}, 1));
    const bool moe = has_routed_experts(s_.model);
    if (!moe) p.ep = 1;
    p.etp = small(a_.integer({"expert-tensor-parallel-size"}, moe && a_.origin != "deepspeed" ? p.tp : 1));
    if (!moe) p.etp = 1;
    const bool sequence = a_.flag({"sequence-parallel"});
    if (p.tp > 1) p.sequence_parallel = sequence;
    if (a_.flag({"use-tp-pp-dp-mapping"})) p.order = "tp-cp-ep-pp-dp";
    if (p.cp > 1) context_method();
  }

  void context_method() {
    const std::string method = a_.text({"cp-comm-type"}).value_or("p2p");
    if (method == "p2p") s_.parallel.cp_method = "ring";
    if (method == "a2a") s_.parallel.cp_method = "all_to_all";
    if (method == "all_gather" || method == "allgather") s_.parallel.cp_method = "all_gather";
    if (method == "a2a+p2p") note("cp-comm-type a2a+p2p: priced with the method chosen automatically");
  }

  void batch() {
    s_.batch.sequence = a_.integer({"seq-length", "encoder-seq-length", "sequence-length"}, 0);
    if (s_.batch.sequence == 0) throw ConfigError("--seq-length is missing", {}, Place{a_.file, 0, 0});
    s_.batch.micro_batch = a_.integer({"micro-batch-size", "batch-size"}, 1);
    s_.batch.global_sequences = a_.integer({"global-batch-size"}, 0);
    if (a_.has({"rampup-batch-size"})) note("rampup-batch-size: the final global batch size is used");
  }

  // Virtual stages and how many layers each holds.
  void stages() {
    ParallelConfig& p = s_.parallel;
    const std::int64_t layers = static_cast<std::int64_t>(s_.model.layers.size());
    const std::int64_t per_chunk = a_.integer({"num-layers-per-virtual-pipeline-stage"}, 0);
    std::int64_t vpp = a_.integer({"num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size"}, 1);
    if (per_chunk > 0) vpp = std::max<std::int64_t>(1, layers / (p.pp * per_chunk));
    const auto layout = a_.text({"pipeline-model-parallel-layout"});
    if (p.pp == 1) return;
    p.vpp = small(std::max<std::int64_t>(1, vpp));
    if (layout)
      from_layout(*layout);
    else
      uneven(layers);
  }

  void from_layout(const std::string& text) {
    ParallelConfig& p = s_.parallel;
    const std::optional<std::vector<int>> chunks = parse_pipeline_layout(text);
    if (!chunks) return note(fmt::format("pipeline-model-parallel-layout '{}' could not be read", text));
    const int count = static_cast<int>(chunks->size());
    if (count % p.pp != 0)
      throw ConfigError(
          fmt::format("--pipeline-model-parallel-layout has {} stages, which pp {} does not divide", count, p.pp), {},
          Place{a_.file, 0, 0});
    p.vpp = count / p.pp;
    p.stage_layers = *chunks;
  }

  void uneven(std::int64_t layers) {
    ParallelConfig& p = s_.parallel;
    const std::int64_t first =
        a_.integer({"decoder-first-pipeline-num-layers", "num-layers-in-first-pipeline-stage"}, 0);
    const std::int64_t last = a_.integer({"decoder-last-pipeline-num-layers", "num-layers-in-last-pipeline-stage"}, 0);
    const std::int64_t chunks = std::int64_t{p.pp} * p.vpp;
    const bool embedding = a_.flag({"account-for-embedding-in-pipeline-split"});
    const bool loss = a_.flag({"account-for-loss-in-pipeline-split"});
    std::vector<int> out(static_cast<std::size_t>(chunks));
    if (first > 0 || last > 0) {
      const std::int64_t middle_ranks = p.pp - (first > 0) - (last > 0);
      const std::int64_t middle = middle_ranks > 0 ? (layers - first - last) / middle_ranks : 0;
      for (std::size_t c = 0; c < out.size(); ++c) {
        const std::size_t rank = c % static_cast<std::size_t>(p.pp);
        const bool is_last = rank + 1 == static_cast<std::size_t>(p.pp);
        const std::int64_t on_rank = rank == 0 && first > 0 ? first : is_last && last > 0 ? last : middle;
        out[c] = small(on_rank / p.vpp);
      }
    } else if (embedding || loss) {
      const std::int64_t each = (layers + embedding + loss) / chunks;
      std::fill(out.begin(), out.end(), small(each));
      if (embedding) --out.front();
      if (loss) --out.back();
    } else {
      return;
    }
    if (std::accumulate(out.begin(), out.end(), std::int64_t{0}) == layers)
      p.stage_layers = out;
    else
      note("uneven pipeline split does not add up; layers are cut as evenly as possible");
  }

  void experts() {
    MoeConfig& m = s_.moe;
    const std::string type =
        a_.text({"moe-token-dispatcher-type"}).value_or(a_.origin == "megatron" ? "allgather" : "alltoall");
    const std::string backend = a_.text({"moe-flex-dispatcher-backend"}).value_or("deepep");
    const bool deepep = a_.flag({"moe-enable-deepep"}) || type == "flex";
    m.dispatcher = deepep ? "deepep" : type == "allgather" ? "allgather" : "alltoall";
    if (type == "flex" && backend != "deepep") note(fmt::format("dispatcher backend {} is priced as deepep", backend));
    m.capacity_factor = a_.number({"moe-expert-capacity-factor", "moe-train-capacity-factor"}).value_or(0);
    if (a_.flag({"disable-moe-token-dropping"})) m.capacity_factor = 0;
    m.overlap_shared = a_.flag({"moe-shared-expert-overlap"});
    m.overlap_ep = a_.flag({"overlap-moe-expert-parallel-comm"}) && s_.parallel.ep > 1;
    a_.flag({"moe-router-force-load-balancing"});  // balanced is the default here
  }

  void activation() {
    const std::string granularity =
        a_.text({"recompute-granularity", "activations-checkpoint-granularity"}).value_or("");
    const bool old_full = a_.flag({"checkpoint-activations"}) || a_.has({"activations-checkpoint-method"});
    const bool full = granularity == "full" || (granularity.empty() && old_full);
    const bool selective = granularity == "selective" || a_.flag({"recompute-activations"});
    const std::string method = a_.text({"recompute-method", "activations-checkpoint-method"}).value_or("uniform");
    const std::int64_t layers = a_.integer({"recompute-num-layers", "activations-checkpoint-num-layers"}, 0);
    const LaunchArgument* modules = a_.find({"recompute-modules"});
    if (full) {
      s_.activation.policy = "full";
      if (method == "block" && layers > 0) s_.activation.recompute_layers = small(layers);
    } else if (selective && modules) {
      for (const std::string& name : modules->values) recompute_module(name);
    } else if (selective) {
      s_.activation.policy = "selective";
    }
    if (a_.flag({"cpu-offloading", "fine-grained-activation-offloading"})) s_.activation.offload = true;
    a_.integer({"cpu-offloading-num-layers"});
  }

  void recompute_module(const std::string& name) {
    struct Same {
      const char* megatron;
      std::vector<const char*> ours;
    };
    static const Same kSame[] = {
        {"core_attn", {"core_attention"}},
        {"moe_act", {"expert_activation"}},
        {"layernorm", {"norm"}},
        {"mla_up_proj", {"mla_up_proj"}},
        {"mlp", {"ffn_up", "activation", "ffn_down"}},
        {"shared_experts", {"shared_up", "shared_activation", "shared_down"}},
        {"moe", {"router", "dispatch", "expert_up", "expert_activation", "expert_down", "combine"}}};
    for (const Same& same : kSame) {
      if (name != same.megatron) continue;
      s_.activation.recompute.insert(s_.activation.recompute.end(), same.ours.begin(), same.ours.end());
      return;
    }
    note(fmt::format("recompute-modules {} has no counterpart and is left out", name));
  }

  void precision() {
    const bool bf16 = a_.flag({"bf16"}), fp16 = a_.flag({"fp16"});
    const std::string format = a_.text({"fp8-format", "fp8"}).value_or("");
    const bool fp8_flag = a_.flag({"fp8-hybrid", "fp8-e4m3"}) && a_.flag({"transformer-engine", "fp8"});
    const std::string recipe = a_.text({"fp8-recipe"}).value_or("delayed");
    const bool fp8 = (!format.empty() && format != "false" && format != "False") || fp8_flag;
    s_.precision.compute = fp16 && !bf16 ? "fp16" : "bf16";
    if (fp8) s_.precision.compute = recipe == "blockwise" ? "fp8_block" : recipe == "mxfp8" ? "mxfp8" : "fp8";
    if (a_.flag({"fp4-format", "fp4"})) s_.precision.compute = "nvfp4";
    a_.text({"fp4-recipe"});
    const std::string trainer = a_.text({"precision"}).value_or("bf16");
    if (trainer.find("16") != std::string::npos && trainer.find("bf16") == std::string::npos && !fp8)
      s_.precision.compute = "fp16";
    if (!bf16 && !fp16 && !fp8 && a_.origin == "megatron") note("FP32 training is priced as BF16");
    const bool gather = a_.flag({"fp8-param-gather"});
    s_.precision.fp8_parameters = gather && fp8;
  }

  void optimizer() {
    OptimizerConfig& o = s_.optimizer;
    const std::string name = a_.text({"optimizer"}).value_or("adam");
    o.name = name.find("muon") != std::string::npos ? "muon" : "adamw";
    o.zero = a_.flag({"use-distributed-optimizer"}) || name.rfind("dist", 0) == 0 ? 1 : 0;
    if (const auto stage = a_.integer({"zero-stage"})) o.zero = small(*stage);
    if (a_.origin == "deepspeed" && a_.flag({"bf16"}) && o.zero == 0) {
      o.zero = 1;
      note("DeepSpeed's BF16 optimizer shards its states at stage 0");
    }
    fully_sharded();
    if (o.zero > 0 && a_.flag({"optimizer-cpu-offload", "cpu-optimizer"})) o.states = "cpu";
    a_.number({"optimizer-offload-fraction"});
    if (a_.flag({"grad-reduce-in-bf16"})) o.gradient_bytes = Bytes(2);
    if (a_.flag({"use-precision-aware-optimizer"})) precision_aware();
  }

  void fully_sharded() {
    const bool fsdp = a_.flag({"use-megatron-fsdp"}) || a_.flag({"use-custom-fsdp"});
    const std::string strategy = a_.text({"data-parallel-sharding-strategy"}).value_or("no_shard");
    if (a_.flag({"use-torch-fsdp2"}) || (fsdp && strategy == "optim_grads_params")) s_.optimizer.zero = 3;
    if (fsdp && strategy == "optim_grads") s_.optimizer.zero = 2;
    if (fsdp && strategy == "optim") s_.optimizer.zero = 1;
    if (a_.flag({"fsdp"})) {
      s_.optimizer.zero = 3;
      a_.text({"fsdp-sharding-strategy"});
    }
  }

  void precision_aware() {
    const auto bytes = [&](LaunchArguments::Names names) {
      const std::string type = a_.text(names).value_or("fp32");
      return type.find("8") != std::string::npos && type.find("fp8") != std::string::npos ? 1
             : type.find("16") != std::string::npos                                       ? 2
                                                                                          : 4;
    };
    s_.optimizer.state_bytes =
        Bytes(bytes({"main-params-dtype"}) + bytes({"exp-avg-dtype"}) + bytes({"exp-avg-sq-dtype"}));
    s_.optimizer.gradient_bytes = Bytes(bytes({"main-grads-dtype"}));
  }

  void overlap() {
    OverlapConfig& o = s_.overlap;
    o.grad_reduce = a_.flag({"overlap-grad-reduce", "overlap-grad-sync"});
    o.param_gather = a_.flag({"overlap-param-gather", "overlap-param-sync"});
    o.tp = a_.flag({"tp-comm-overlap", "ub-tp-comm-overlap"}) && s_.parallel.tp > 1;
    o.p2p = !a_.flag({"no-overlap-p2p-communication"});
  }

  LaunchArguments& a_;
  ImportedScenario& out_;
  Scenario& s_;
};

bool says_something(const LaunchArgument& a) {
  if (a.values.empty()) return true;
  static const char* const kNothing[] = {"null", "None", "false", "False", "0", "", "[]", "0.0"};
  return std::none_of(std::begin(kNothing), std::end(kNothing), [&](const char* v) { return a.values.front() == v; });
}

void list_unused(const LaunchArguments& a, ImportedScenario& out) {
  static const char* const kLauncher[] = {
      "nnodes",  "nproc-per-node", "num-nodes", "num-gpus",         "nodes", "node-rank",      "gpus-per-node",
      "devices", "accelerator",    "jobid",     "kill-on-bad-exit", "wait",  "ntasks-per-node"};
  const bool recipe = a.origin == "nemo" || a.origin == "bridge";
  for (const LaunchArgument& arg : a.all()) {
    if (arg.used) continue;
    const bool launcher =
        std::any_of(std::begin(kLauncher), std::end(kLauncher), [&](const char* name) { return arg.name == name; });
    if (launcher || is_irrelevant_argument(arg.name)) {
      out.irrelevant.push_back(arg.name);
    } else if (!recipe || says_something(arg)) {
      std::string value;
      for (const std::string& v : arg.values) value += " " + v;
      out.unknown.push_back(arg.line > 0 ? fmt::format("--{}{} (line {})", arg.name, value, arg.line)
                                         : fmt::format("--{}{}", arg.name, value));
    }
  }
  std::sort(out.irrelevant.begin(), out.irrelevant.end());
  out.irrelevant.erase(std::unique(out.irrelevant.begin(), out.irrelevant.end()), out.irrelevant.end());
}

}  // namespace

ImportedScenario import_launch(LaunchArguments& arguments, const ImportOptions& options) {
  ImportedScenario out;
  ScenarioReader(arguments, out).read();
  if (!options.name.empty()) out.scenario.model.name = options.name;
  out.scenario.model.source = fmt::format("launch arguments ({})", arguments.origin);
  choose_cluster(out, options, arguments.nodes, arguments.gpus_per_node);
  list_unused(arguments, out);
  return out;
}

}  // namespace k3sim
