// torchtitan job configuration -> scenario. FSDP2 shards fully over data_parallel_shard_degree; local_batch_size is per
// data-parallel rank; a pipeline cuts it into micro-batches of one sequence; selective checkpointing by operator saves
// every second matrix product, for which the policy `selective` stands in.
// Source: torchtitan config/job_config.py (ParallelDims, Training, ActivationCheckpoint), train_configs/*.toml.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>

#include "models/config/model_kinds.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"
#include "tools/import/imported_scenario.h"
#include "tools/import/toml_reader.h"
#include "tools/import/torchtitan_models.h"

namespace k3sim {
namespace {

class TitanReader {
 public:
  TitanReader(const std::string& toml, const std::string& file, const ImportOptions& options)
      : text_(toml), file_(file), options_(options), values_(read_toml(toml, file)) {}

  ImportedScenario read() {
    model();
    parallel();
    cluster();
    batch();
    schedule();
    rest();
    list_unused();
    return std::move(out_);
  }

 private:
  const TomlValue* find(const std::string& key) {
    const auto it = values_.find(key);
    if (it == values_.end() || it->second.values.empty()) return nullptr;
    used_.insert(key);
    return &it->second;
  }
  std::string word(const std::string& key, const std::string& fallback) {
    const TomlValue* v = find(key);
    return v ? v->values.front() : fallback;
  }
  bool flag(const std::string& key) { return word(key, "false") == "true"; }
  std::int64_t integer(const std::string& key, std::int64_t fallback) {
    const TomlValue* v = find(key);
    if (!v) return fallback;
    std::string digits;
    for (char c : v->values.front())
      if (c != '_') digits += c;
    char* end = nullptr;
    const std::int64_t value = std::strtoll(digits.c_str(), &end, 10);
    if (digits.empty() || *end != '\0')
      throw ConfigError(fmt::format("'{}' is no whole number", v->values.front()), key, Place{file_, v->line, 0});
    return value;
  }
  int degree(const std::string& key) { return static_cast<int>(std::clamp<std::int64_t>(integer(key, 1), 1, 100000)); }
  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void model() {
    const std::string family = word("model.name", "llama3"), flavor = word("model.flavor", "");
    const std::optional<TorchtitanModel> found = torchtitan_model(family, flavor);
    if (!found) {
      const std::vector<std::string> known = torchtitan_flavors(family);
      Problem p{{file_, 0, 0},
                "model.flavor",
                fmt::format("unknown flavour '{}' of '{}'", flavor, family),
                did_you_mean(flavor, known)};
      throw ConfigError(std::vector<Problem>{p});
    }
    out_.zoo_model = found->zoo;
    out_.scenario.model = found->model;
    out_.scenario.mtp = false;  // torchtitan trains no multi-token prediction
  }

  void parallel() {
    ParallelConfig& p = out_.scenario.parallel;
    p.tp = degree("parallelism.tensor_parallel_degree");
    if (find("training.tensor_parallel_degree")) p.tp = degree("training.tensor_parallel_degree");
    p.pp = std::max(degree("parallelism.pipeline_parallel_degree"), degree("experimental.pipeline_parallel_degree"));
    p.cp = std::max(degree("parallelism.context_parallel_degree"), degree("experimental.context_parallel_degree"));
    p.ep = degree("parallelism.expert_parallel_degree");
    p.etp = degree("parallelism.expert_tensor_parallel_degree");
    const std::string rotate = word("parallelism.context_parallel_rotate_method", "allgather");
    if (p.cp > 1) p.cp_method = rotate == "alltoall" ? "ring" : "all_gather";
    if (!has_routed_experts(out_.scenario.model)) p.ep = p.etp = 1;
  }

  void cluster() {
    std::optional<std::int64_t> nodes;
    const std::int64_t shard =
        integer("parallelism.data_parallel_shard_degree",
                integer("training.data_parallel_shard_degree", integer("training.data_parallel_degree", -1)));
    const std::int64_t replicate = integer("parallelism.data_parallel_replicate_degree", 1);
    const ParallelConfig& p = out_.scenario.parallel;
    std::int64_t gpus = 0;
    std::smatch match;
    if (shard > 0)
      gpus = shard * replicate * p.tp * p.pp * p.cp;
    else if (std::regex_search(text_, match, std::regex("#[^\\n]*?(\\d+) *(x )?(A100|H100|H200|B200|GPU)")))
      gpus = std::atoll(match[1].str().c_str());
    std::int64_t per_node = 8;
    if (gpus > 0 && gpus < 8) per_node = gpus;
    if (gpus > 0) nodes = std::max<std::int64_t>(1, gpus / per_node);
    out_.scenario.batch.global_sequences = 1;  // set in batch(); keeps the cluster from assuming one
    choose_cluster(out_, options_, nodes, per_node);
    const std::int64_t dp = out_.scenario.cluster.gpus() / (std::int64_t{p.tp} * p.pp * p.cp);
    OptimizerConfig& o = out_.scenario.optimizer;
    o.zero = shard == 1 && replicate > 1 ? 0 : 3;
    if (replicate > 1 && o.zero == 3 && dp % replicate == 0) o.shard_group = static_cast<int>(dp / replicate * p.cp);
    const std::string reshard = word("parallelism.fsdp_reshard_after_forward", "default");
    o.reshard_after_forward = reshard == "always" || (reshard == "default" && p.pp == 1);
  }

  void batch() {
    BatchConfig& b = out_.scenario.batch;
    const ParallelConfig& p = out_.scenario.parallel;
    b.sequence = integer("training.seq_len", 2048);
    const std::int64_t local = integer("training.local_batch_size", integer("training.batch_size", 8));
    const std::int64_t dp =
        std::max<std::int64_t>(1, out_.scenario.cluster.gpus() / (std::int64_t{p.tp} * p.pp * p.cp));
    b.micro_batch = p.pp > 1 ? integer("parallelism.pipeline_parallel_microbatch_size", 1) : local;
    const std::int64_t global = integer("training.global_batch_size", -1);
    b.global_sequences = global > 0 ? global : local * dp;
  }

  void schedule() {
    ParallelConfig& p = out_.scenario.parallel;
    if (p.pp == 1) return;
    const std::string name =
        word("parallelism.pipeline_parallel_schedule", word("experimental.pipeline_parallel_schedule", "1F1B"));
    struct Same {
      const char *titan, *ours;
      int vpp;
    };
    static const Same kSame[] = {{"1F1B", "1f1b", 1},
                                 {"GPipe", "gpipe", 1},
                                 {"Interleaved1F1B", "interleaved", 2},
                                 {"LoopedBFS", "looped_bfs", 2},
                                 {"ZBVZeroBubble", "zb_v", 2},
                                 {"DualPipeV", "dualpipe_v", 2},
                                 {"InterleavedZeroBubble", "interleaved", 2}};
    const auto it = std::find_if(std::begin(kSame), std::end(kSame), [&](const Same& s) { return name == s.titan; });
    if (it == std::end(kSame)) return note(fmt::format("schedule {} has no counterpart; 1f1b is used", name));
    if (name == "InterleavedZeroBubble") note("InterleavedZeroBubble is priced as interleaved 1F1B");
    out_.scenario.schedule.name = it->ours;
    p.vpp = it->vpp;
    const std::int64_t per_stage = integer("parallelism.pipeline_parallel_layers_per_stage", 0);
    if (per_stage > 0 && it->vpp > 1 && std::string(it->ours) == "interleaved")
      p.vpp = std::max(
          2, static_cast<int>(static_cast<std::int64_t>(out_.scenario.model.layers.size()) / (p.pp * per_stage)));
  }

  void rest() {
    Scenario& s = out_.scenario;
    const std::string mode = word("activation_checkpoint.mode", "selective");
    s.activation.policy = mode == "full" ? "full" : mode == "none" ? "none" : "selective";
    if (mode == "selective") note("selective checkpointing by operator is priced as the policy selective");
    std::string converters;
    if (const TomlValue* v = find("model.converters"))
      for (const std::string& c : v->values) converters += c + ",";
    if (converters.find("mx") != std::string::npos)
      s.precision.compute = "mxfp8";
    else if (converters.find("float8") != std::string::npos || flag("float8.enable_float8_linear") ||
             flag("training.enable_float8_linear"))
      s.precision.compute = "fp8";
    for (const char* key :
         {"float8.enable_fsdp_float8_all_gather", "quantize.linear.float8.enable_fsdp_float8_all_gather"})
      if (flag(key) && s.precision.compute == "fp8") s.precision.fp8_parameters = true;
    s.overlap.tp =
        (flag("parallelism.enable_async_tensor_parallel") || flag("experimental.enable_async_tensor_parallel")) &&
        s.parallel.tp > 1;
    const std::string optimizer = word("optimizer.name", "AdamW");
    s.optimizer.name = optimizer.find("uon") != std::string::npos ? "muon" : "adamw";
    s.software = "torchtitan";
  }

  void list_unused() {
    static const std::regex kNothing(
        "^(job|profiling|metrics|lr_scheduler|checkpoint|optimizer|validation|comm|debug|fault_tolerance|memory_"
        "estimation|"
        "compile)\\..*|^training\\.(steps|max_norm|dataset.*|seed|deterministic|compile|gc_freq|warmup_steps|enable_"
        "cpu_offload|"
        "dump_folder|mixed_precision.*)|^model\\.(tokenizer.*|hf_assets_path|norm_type|print_.*)|.*filter_fqns|.*\\."
        "fqns|"
        ".*precompute_float8.*|activation_checkpoint\\.(selective_ac_option|per_op_.*|early_stop)|parallelism\\.("
        "enable_compiled_autograd|"
        "disable_loss_parallel|pipeline_parallel_split_points)|experimental\\.custom_.*|.*\\.recipe(_name)?");
    for (const auto& [key, value] : values_) {
      if (used_.count(key) > 0) continue;
      if (std::regex_match(key, kNothing))
        out_.irrelevant.push_back(key);
      else if (!value.values.empty() && value.values.front() != "false")
        out_.unknown.push_back(fmt::format("{} = {} (line {})", key, value.values.front(), value.line));
    }
  }

  const std::string &text_, &file_;
  const ImportOptions& options_;
  std::map<std::string, TomlValue> values_;
  std::set<std::string> used_;
  ImportedScenario out_;
};

}  // namespace

ImportedScenario import_torchtitan(const std::string& toml, const std::string& file, const ImportOptions& options) {
  return TitanReader(toml, file, options).read();
}

}  // namespace k3sim
