// Source: Megatron-LM (validate_args, initialize_model_parallel); see scenario_check.h.
#include "models/config/scenario_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <set>
#include <string>

#include "models/config/field_reader.h"
#include "models/config/field_table.h"
#include "models/config/model_kinds.h"

namespace k3sim {
namespace {

class Checker {
 public:
  Checker(const Scenario& scenario, const YamlDocument& document, bool model_known)
      : s_(scenario), p_(scenario.parallel), root_(document.root()), model_known_(model_known) {
    for (const Problem& problem : document.problems()) bad_.insert(problem.key.substr(0, problem.key.find('.')));
  }

  void run() const {
    if (sound({"parallel", "cluster"})) layout();
    if (sound({"parallel"})) order();
    if (sound({"parallel", "schedule"})) chunks();
    if (sound({"schedule"})) schedule_options();
    if (sound({"batch"})) batch_size();
    if (sound({"batch", "parallel", "cluster"})) batch_split();
    if (sound({"parallel", "optimizer", "cluster"})) optimizer();
    if (sound({"activation"})) activation();
    if (sound({"moe", "parallel"})) routing();
    if (sound({"overlap", "parallel", "precision"})) precision_and_overlap();
    if (!model_known_) return;
    if (sound({"parallel"})) layers(), tensor_split(), experts(), exchanges();
    if (sound({"vision", "parallel", "cluster"})) vision();
    if (sound({"moe", "batch", "mtp"})) model_features();
  }

 private:
  bool sound(std::initializer_list<const char*> sections) const {
    return std::none_of(sections.begin(), sections.end(), [&](const char* name) { return bad_.count(name) > 0; });
  }
  YamlNode at(const std::string& path) const { return node_at(root_, path); }
  bool given(const std::string& path) const { return at(path).present(); }
  void unused(const std::string& path, const std::string& why) const { at(path).problem("has no effect: " + why); }

  std::int64_t model_ranks() const { return std::int64_t{p_.tp} * p_.pp * p_.cp; }
  std::int64_t gpus() const { return std::int64_t{s_.cluster.nodes} * s_.cluster.gpus_per_node; }
  std::int64_t dp() const { return p_.dp > 0 ? p_.dp : gpus() / model_ranks(); }
  bool layout_fits() const { return gpus() % model_ranks() == 0 && model_ranks() * dp() == gpus(); }

  void layout() const {
    if (gpus() % model_ranks() != 0) {
      at("parallel")
          .problem(fmt::format("tp {} x pp {} x cp {} = {} does not divide the {} GPUs ({} nodes of {})", p_.tp, p_.pp,
                               p_.cp, model_ranks(), gpus(), s_.cluster.nodes, s_.cluster.gpus_per_node));
    } else if (!layout_fits()) {
      at("parallel.dp")
          .problem(fmt::format("tp {} x pp {} x cp {} x dp {} = {}, but the cluster has {} GPUs; auto would "
                               "be {}",
                               p_.tp, p_.pp, p_.cp, p_.dp, model_ranks() * p_.dp, gpus(), gpus() / model_ranks()));
    } else if (const std::int64_t stage = gpus() / p_.pp, expert = std::int64_t{p_.ep} * p_.etp; stage % expert != 0) {
      at("parallel.ep")
          .problem(fmt::format("ep {} x etp {} = {} does not divide the {} GPUs of a pipeline stage "
                               "(tp x cp x dp)",
                               p_.ep, p_.etp, expert, stage));
    }
  }

  void order() const {
    std::string rest = p_.order + "-";
    std::multiset<std::string> names;
    for (std::size_t dash = rest.find('-'); dash != std::string::npos; dash = rest.find('-')) {
      names.insert(rest.substr(0, dash));
      rest = rest.substr(dash + 1);
    }
    if (names != std::multiset<std::string>{"tp", "cp", "ep", "dp", "pp"})
      at("parallel.order")
          .problem(fmt::format("must name tp, cp, ep, dp and pp once each, joined by '-', got '{}'", p_.order),
                   "for example tp-cp-ep-dp-pp");
  }

  const ScheduleChoice* choice() const {
    for (const ScheduleChoice& c : schedule_choices())
      if (c.name == s_.schedule.name) return &c;
    return nullptr;
  }

  void chunks() const {
    if (!s_.schedule.file.empty()) return;
    if (p_.pp == 1 && p_.vpp > 1)
      return at("parallel.vpp").problem(fmt::format("vpp {} needs a pipeline, but pp is 1", p_.vpp));
    const ScheduleChoice* c = choice();
    if (!c || p_.pp == 1) return;
    if (c->chunks > 0 && p_.vpp != c->chunks)
      at("parallel.vpp")
          .problem(fmt::format("schedule {} takes {} model chunk{} per rank (vpp {}), got vpp {}", c->name, c->chunks,
                               c->chunks > 1 ? "s" : "", c->chunks, p_.vpp));
    if (c->name == "interleaved" && p_.vpp < 2)
      at("parallel.vpp").problem("schedule interleaved needs vpp of at least 2, got 1");
  }

  void schedule_options() const {
    const ScheduleConfig& schedule = s_.schedule;
    if (given("schedule.name") && given("schedule.file"))
      return at("schedule.file")
          .problem(fmt::format("name {} and file {} cannot both be given", schedule.name, schedule.file));
    const ScheduleChoice* c = choice();
    const bool from_file = given("schedule.file");
    const std::string why =
        from_file ? "the order comes from schedule.file" : fmt::format("schedule {} does not use it", schedule.name);
    if (schedule.extra_warmup > 0 && (from_file || (c && !c->takes_warmup))) unused("schedule.extra_warmup", why);
    if (schedule.split_wgrad && (from_file || (c && !c->splits_wgrad))) unused("schedule.split_wgrad", why);
  }

  void batch_size() const {
    const BatchConfig& b = s_.batch;
    if (b.global_tokens > 0 && b.global_sequences > 0)
      return at("batch.global_sequences")
          .problem(fmt::format("global_tokens {} and global_sequences {} cannot both be given", b.global_tokens,
                               b.global_sequences));
    if (b.global_tokens == 0 && b.global_sequences == 0)
      return at("batch").problem("needs global_tokens or global_sequences");
    if (b.global_tokens % b.sequence != 0)
      at("batch.global_tokens")
          .problem(fmt::format("{} is not a multiple of sequence {}", b.global_tokens, b.sequence));
    const std::int64_t packed = std::accumulate(b.documents.begin(), b.documents.end(), std::int64_t{0});
    if (!b.documents.empty() && packed != b.sequence)
      at("batch.documents").problem(fmt::format("add up to {} tokens, but sequence is {}", packed, b.sequence));
  }

  void batch_split() const {
    const BatchConfig& b = s_.batch;
    const bool one_size = (b.global_tokens > 0) != (b.global_sequences > 0);
    if (one_size && layout_fits() && b.global_tokens % b.sequence == 0) {
      const std::int64_t sequences = b.global_sequences > 0 ? b.global_sequences : b.global_tokens / b.sequence;
      const char* key = b.global_sequences > 0 ? "batch.global_sequences" : "batch.global_tokens";
      if (sequences % (b.micro_batch * dp()) != 0)
        at(key).problem(fmt::format("{} sequences do not split into micro_batch {} x dp {} = {}", sequences,
                                    b.micro_batch, dp(), b.micro_batch * dp()));
    }
    if (b.sequence % p_.cp != 0)
      at("parallel.cp").problem(fmt::format("cp {} does not divide sequence {}", p_.cp, b.sequence));
    else if (p_.sequence_parallel && (b.sequence / p_.cp * b.micro_batch) % p_.tp != 0)
      at("parallel.tp")
          .problem(fmt::format("with sequence_parallel, tp {} must divide the {} tokens of a rank", p_.tp,
                               b.sequence / p_.cp * b.micro_batch));
  }

  void optimizer() const {
    const OptimizerConfig& o = s_.optimizer;
    if (o.shard_group > 0 && layout_fits() && dp() * p_.cp % o.shard_group != 0)
      at("optimizer.shard_group")
          .problem(fmt::format("{} does not divide the {} data-parallel ranks (dp {} x cp {})", o.shard_group,
                               dp() * p_.cp, dp(), p_.cp));
    const std::string why = fmt::format("zero is {}", o.zero);
    if (given("optimizer.reshard_after_forward") && o.zero < 3) unused("optimizer.reshard_after_forward", why);
    if (o.shard_group > 0 && o.zero == 0) unused("optimizer.shard_group", why);
    if (o.gradient_shards == "cpu" && o.zero == 0) unused("optimizer.gradient_shards", why);
  }

  void activation() const {
    const ActivationConfig& a = s_.activation;
    if (a.recompute_layers > 0 && a.recompute_fraction < 1)
      return at("activation.recompute_fraction")
          .problem(
              fmt::format("{} and recompute_layers {} cannot both be given", a.recompute_fraction, a.recompute_layers));
    if ((a.policy != "none" && a.policy != "keep_all") || !a.recompute.empty() || !a.tensors.empty()) return;
    if (a.recompute_layers > 0) unused("activation.recompute_layers", "policy none recomputes nothing");
    if (a.recompute_fraction < 1) unused("activation.recompute_fraction", "policy none recomputes nothing");
  }

  void routing() const {
    const RoutingConfig& r = s_.moe.routing;
    if (r.source == "file" && r.file.empty()) at("moe.routing.source").problem("source file needs moe.routing.file");
    if (r.source != "file" && !r.file.empty())
      unused("moe.routing.file", fmt::format("routing.source is {}", r.source));
    if (r.skew_sigma > 0 && (r.source == "balanced" || r.source == "file"))
      unused("moe.routing.skew_sigma", fmt::format("routing.source is {}", r.source));
    if (r.layer_sigma > 0 && r.source != "lognormal")
      unused("moe.routing.layer_sigma", fmt::format("routing.source is {}", r.source));
    if (given("moe.tolerance") && s_.moe.dispatcher != "moonep_tolerance")
      unused("moe.tolerance", fmt::format("dispatcher is {}", s_.moe.dispatcher));
    if (given("moe.redundant_experts") && s_.moe.dispatcher != "eplb")
      unused("moe.redundant_experts", fmt::format("dispatcher is {}", s_.moe.dispatcher));
    if (s_.moe.overlap_ep && p_.ep == 1) unused("moe.overlap_ep", "ep is 1");
  }

  void precision_and_overlap() const {
    if (s_.overlap.tp && p_.tp == 1) unused("overlap.tp", "tp is 1");
    if (p_.cp_method != "auto" && p_.cp == 1) unused("parallel.cp_method", "cp is 1");
    if (s_.precision.fp8_parameters && !s_.precision.compute.starts_with("fp8") && s_.precision.compute != "mxfp8")
      unused("precision.fp8_parameters", fmt::format("precision.compute is {}", s_.precision.compute));
  }

  void layers() const {
    const auto layers = static_cast<std::int64_t>(s_.model.layers.size());
    const std::int64_t chunks = std::int64_t{p_.pp} * p_.vpp;
    if (!p_.stage_layers.empty() && p_.partition != "even") unused("parallel.partition", "stage_layers are given");
    if (p_.stage_layers.empty()) {
      if (layers < chunks)
        at("parallel.pp")
            .problem(fmt::format("pp {} x vpp {} = {} model chunks, but {} has {} layers", p_.pp, p_.vpp, chunks,
                                 s_.model.name, layers));
      return;
    }
    const auto entries = static_cast<std::int64_t>(p_.stage_layers.size());
    const std::int64_t sum = std::accumulate(p_.stage_layers.begin(), p_.stage_layers.end(), std::int64_t{0});
    if (entries != chunks)
      at("parallel.stage_layers")
          .problem(fmt::format("has {} entries, but pp {} x vpp {} = {} model chunks", entries, p_.pp, p_.vpp, chunks));
    if (sum != layers)
      at("parallel.stage_layers")
          .problem(fmt::format("add up to {} layers, but {} has {}", sum, s_.model.name, layers));
  }

  void tensor_split() const {
    const YamlNode tp = at("parallel.tp");
    for (const LayerSpec& layer : s_.model.layers) {
      const AttentionSpec& a = layer.attention;
      if (a.heads % p_.tp != 0)
        tp.problem(fmt::format("tp {} does not divide the {} attention heads of {}", p_.tp, a.heads, s_.model.name));
      const bool shared_heads = a.kind == AttentionKind::mha && a.kv_heads > 0;
      if (shared_heads && a.kv_heads % p_.tp != 0 && p_.tp % a.kv_heads != 0)
        tp.problem(fmt::format("tp {} neither divides nor is a multiple of the {} key-value heads of {}", p_.tp,
                               a.kv_heads, s_.model.name));
      if (layer.ffn.intermediate % p_.tp != 0)
        tp.problem(
            fmt::format("tp {} does not divide the FFN width {} of {}", p_.tp, layer.ffn.intermediate, s_.model.name));
      if (layer.ffn.is_moe() && layer.ffn.expert_intermediate % p_.etp != 0)
        at("parallel.etp")
            .problem(fmt::format("etp {} does not divide the expert width {} of {}", p_.etp,
                                 layer.ffn.expert_intermediate, s_.model.name));
    }
  }

  bool has_experts() const { return has_routed_experts(s_.model); }

  void experts() const {
    if (!has_experts()) {
      const std::string why = fmt::format("model {} has no experts", s_.model.name);
      if (p_.ep > 1) unused("parallel.ep", why);
      if (p_.etp > 1) unused("parallel.etp", why);
      if (s_.precision.qat != "none") unused("precision.qat", why);
      return;
    }
    for (const LayerSpec& layer : s_.model.layers)
      if (layer.ffn.is_moe() && layer.ffn.experts % p_.ep != 0)
        at("parallel.ep")
            .problem(
                fmt::format("ep {} does not divide the {} experts of {}", p_.ep, layer.ffn.experts, s_.model.name));
  }

  // Exchanges of one kind of attention need that kind, and heads for rows need heads that divide.
  void exchanges() const {
    const auto has = [&](AttentionKind kind) {
      return std::any_of(s_.model.layers.begin(), s_.model.layers.end(),
                         [&](const LayerSpec& l) { return l.attention.kind == kind; });
    };
    const auto check = [&](const char* key, const std::string& value, AttentionKind kind, const char* name) {
      if (value == "auto") return;
      if (p_.cp == 1) return unused(key, "cp is 1");
      if (!has(kind)) return unused(key, fmt::format("model {} has no {} layers", s_.model.name, name));
      if (value != "all_to_all") return;
      for (const LayerSpec& l : s_.model.layers)
        if (l.attention.kind == kind && l.attention.heads % (std::int64_t{p_.cp} * p_.tp) != 0)
          return at(key).problem(fmt::format("all_to_all: cp {} x tp {} does not divide the {} heads of {}", p_.cp,
                                             p_.tp, l.attention.heads, s_.model.name));
    };
    check("parallel.kda_exchange", p_.kda_exchange, AttentionKind::kda, "KDA");
    check("parallel.mla_exchange", p_.mla_exchange, AttentionKind::mla, "MLA");
  }

  void vision() const {
    const VisionConfig& v = s_.vision;
    if (v.placement == "none") {
      if (given("vision.placement")) return;  // switched off on purpose: the rest waits for being switched on again
      for (const char* key :
           {"images_per_sequence", "image_patches", "size_sigma", "largest_image", "piece", "group", "seed"})
        if (given(std::string("vision.") + key)) unused(std::string("vision.") + key, "vision.placement is none");
      return;
    }
    if (!s_.model.vision.present())
      return unused("vision.placement", fmt::format("model {} has no vision encoder", s_.model.name));
    if ((v.group & (v.group - 1)) != 0)
      at("vision.group").problem(fmt::format("{} is not a power of two", v.group));
    else if (layout_fits() && dp() * p_.cp % std::max(p_.cp, v.group) != 0)
      at("vision.group")
          .problem(fmt::format("{} does not divide the {} ranks of a stage (dp {} x cp {})", v.group, dp() * p_.cp,
                               dp(), p_.cp));
  }

  void model_features() const {
    const ModelSpec& m = s_.model;
    if (given("moe") && !has_experts()) unused("moe", fmt::format("model {} has no experts", m.name));
    if (given("attnres") && m.attnres_block == 0)
      unused("attnres", fmt::format("model {} has no attention residuals", m.name));
    if (s_.mtp && given("mtp") && m.mtp_layers == 0) unused("mtp", fmt::format("model {} has no MTP layers", m.name));
    const bool shared = std::any_of(m.layers.begin(), m.layers.end(),
                                    [](const LayerSpec& layer) { return layer.ffn.shared_intermediate > 0; });
    if (s_.moe.overlap_shared && has_experts() && !shared)
      unused("moe.overlap_shared", fmt::format("model {} has no shared experts", m.name));
    if (s_.moe.dispatch_precision == "fp8" && s_.precision.compute.rfind("fp8", 0) != 0)
      unused("moe.dispatch_precision", fmt::format("experts compute in {}", s_.precision.compute));
    if (m.learned_positions && m.max_positions > 0 && s_.batch.sequence > m.max_positions)
      at("batch.sequence")
          .problem(fmt::format("{} is longer than the {} trained positions of {}", s_.batch.sequence, m.max_positions,
                               m.name));
  }

  const Scenario& s_;
  const ParallelConfig& p_;
  YamlNode root_;
  bool model_known_;
  std::set<std::string> bad_;  // sections with a wrong value or an unknown key
};

}  // namespace

void check_scenario(const Scenario& scenario, const YamlDocument& document, bool model_known) {
  document.find_unknown_keys();
  Checker(scenario, document, model_known).run();
}

}  // namespace k3sim
