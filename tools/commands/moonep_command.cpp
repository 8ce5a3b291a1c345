// Reads counts, plans, prints. JSON keys: product-spec section 7 (alloc, experts_to_copy with -1 for unused slots,
// rows_per_rank, replicas_received, replicas_sent) and a few more.
// Source: k3-facts sections 3.3 (plan) and 3.6 (volumes). Valid for counts of one layer and micro-batch.
#include "tools/commands/moonep_command.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/moe/counts_csv.h"
#include "models/moe/moonep_planner.h"
#include "models/moe/volumes.h"
#include "sim/base/error.h"
#include "tools/commands/command.h"
#include "tools/commands/text_table.h"

namespace k3sim {
namespace {

using Json = nlohmann::ordered_json;

void check_options(const MoonepCommandOptions& o) {
  if (o.experts <= 0) throw UsageError(fmt::format("--experts must be positive, got {}", o.experts));
  if (o.ranks <= 0) throw UsageError(fmt::format("--ranks must be positive, got {}", o.ranks));
  if (o.experts % o.ranks != 0) {
    throw UsageError(fmt::format("--experts {} cannot be owned evenly by --ranks {}: {} experts would be left over",
                                 o.experts, o.ranks, o.experts % o.ranks));
  }
  if (o.topk < 0 || o.topk > o.experts)
    throw UsageError(fmt::format("--topk {} is outside 1 ... {}", o.topk, o.experts));
  if (o.pad_rows <= 0) throw UsageError(fmt::format("--pad must be positive, got {}", o.pad_rows));
  if (!(o.tolerance >= 0.0 && o.tolerance < 1e6))
    throw UsageError(fmt::format("--tolerance {} is negative or too large", o.tolerance));
  if (o.domain_ranks < 0) throw UsageError(fmt::format("--domain must not be negative, got {}", o.domain_ranks));
  if (o.width <= 0 || o.intermediate <= 0) throw UsageError("--width and --intermediate must be positive");
}

ExpertCounts choose_counts(const MoonepCommandOptions& o) {
  std::vector<RoutedCounts> tables = read_counts_csv(o.counts_file, o.experts, o.ranks);
  std::erase_if(tables, [&](const RoutedCounts& t) {
    return (o.layer >= 0 && t.id.layer != o.layer) || (o.micro_batch >= 0 && t.id.micro_batch != o.micro_batch);
  });
  if (tables.size() == 1) return std::move(tables.front().counts);
  if (tables.empty())
    throw ConfigError("no counts for the chosen --layer and --micro-batch", "", {o.counts_file, 0, 0});
  throw ConfigError(fmt::format("{} layers and micro-batches, from layer {} micro-batch {} to layer {} micro-batch {}; "
                                "choose one with --layer and --micro-batch",
                                tables.size(), tables.front().id.layer, tables.front().id.micro_batch,
                                tables.back().id.layer, tables.back().id.micro_batch),
                    "", {o.counts_file, 0, 0});
}

template <class T>
Json matrix(const std::vector<T>& values, int rows, int columns) {
  Json out = Json::array();
  for (int r = 0; r < rows; ++r) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(MoonepPlan::at(r, 0, columns));
    out.push_back(std::vector<T>(begin, begin + columns));
  }
  return out;
}

std::vector<std::int64_t> rows_per_rank(const MoonepPlan& plan) {
  std::vector<std::int64_t> rows;
  for (int r = 0; r < plan.ranks; ++r) rows.push_back(plan.rows(r));
  return rows;
}

Json volumes_json(const MoonepCommandOptions& o, const MoonepPlan& plan) {
  const ExpertShape expert{o.width, o.intermediate};
  const int largest_sender = *std::max_element(plan.replicas_sent.begin(), plan.replicas_sent.end());
  Json v{{"moved_rows", plan.moved_rows()},
         {"replica_bytes", replica_weight_bytes(expert).count()},
         {"largest_sender_bytes", (replica_weight_bytes(expert) * largest_sender).count()},
         {"replica_pool_bytes", replica_pool_bytes(expert, plan.experts_per_rank()).count()},
         {"receive_buffer_bytes", plan.row_capacity * o.width * 2}};
  if (o.topk > 0) {
    const ExchangeShape shape{.experts = o.experts,
                              .ranks = o.ranks,
                              .topk = o.topk,
                              .tokens_per_rank = plan.cap.front() / o.topk,
                              .width = o.width};
    const ExchangeVolume x = exchange_volume(shape);
    v["distinct_ranks_per_token"] = x.distinct_ranks;
    v["dispatch_bytes_per_rank"] = x.egress.count();
    v["dispatch_bytes_without_deduplication"] = x.logical.count();
  }
  return v;
}

Json plan_json(const MoonepCommandOptions& o, const ExpertCounts& counts, const MoonepPlan& plan) {
  Json quotas = Json::array();
  for (const Quota& q : plan.quotas) quotas.push_back({{"donor", q.donor}, {"receiver", q.receiver}, {"rows", q.rows}});
  return Json{{"experts", plan.experts},
              {"ranks", plan.ranks},
              {"alloc", matrix(plan.alloc, plan.ranks, plan.experts)},
              {"experts_to_copy", matrix(plan.experts_to_copy, plan.ranks, plan.slots_per_rank)},
              {"rows_per_rank", rows_per_rank(plan)},
              {"replicas_received", plan.replicas_received},
              {"replicas_sent", plan.replicas_sent},
              {"rows_before", counts.per_owner_rank()},
              {"cap", plan.cap},
              {"quotas", quotas},
              {"cu_seqlens", matrix(plan.cu_seqlens, plan.ranks, plan.groups_per_rank)},
              {"row_capacity", plan.row_capacity},
              {"max_violation", max_violation(counts.per_expert())},
              {"volumes", volumes_json(o, plan)}};
}

std::string foreign_list(const MoonepPlan& plan, int rank) {
  std::string out;
  int shown = 0, total = plan.replicas_received[static_cast<std::size_t>(rank)];
  for (int s = 0; s < plan.slots_per_rank && shown < 6; ++s) {
    const std::int32_t e = plan.slot_at(rank, s);
    if (e < 0) continue;
    out += fmt::format("{}{}:{}", shown == 0 ? "" : " ", e, plan.alloc_at(rank, e));
    ++shown;
  }
  return shown < total ? out + fmt::format(" and {} more", total - shown) : out;
}

std::string human_size(std::int64_t bytes) {
  const double b = static_cast<double>(bytes);
  return b >= kGB ? fmt::format("{:.3f} GB", b / kGB) : fmt::format("{:.3f} MB", b / 1e6);
}

void print_plan(const MoonepCommandOptions& o, const ExpertCounts& counts, const MoonepPlan& plan, std::ostream& out) {
  out << fmt::format("{} experts on {} ranks, {} rows, MaxVio {:.3f}\n\n", plan.experts, plan.ranks, counts.total(),
                     max_violation(counts.per_expert()));
  TextTable table({"rank", "rows before", "rows", "padded", "received", "sent", "replicas (expert:rows)"});
  const std::vector<std::int64_t> before = counts.per_owner_rank();
  for (int r = 0; r < plan.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    table.add({fmt::to_string(r), fmt::to_string(before[i]), fmt::to_string(plan.rows(r)),
               fmt::to_string(plan.cu_seqlen_at(r, plan.groups_per_rank - 1)),
               fmt::to_string(plan.replicas_received[i]), fmt::to_string(plan.replicas_sent[i]),
               foreign_list(plan, r)});
  }
  out << table.to_text() << '\n';
  const Json v = volumes_json(o, plan);
  const double share =
      counts.total() == 0 ? 0.0 : 100.0 * static_cast<double>(plan.moved_rows()) / static_cast<double>(counts.total());
  out << fmt::format("rows moved           {} ({:.2f} %)\n", plan.moved_rows(), share);
  out << fmt::format("replica weights      {} each, largest sender {}\n",
                     human_size(v["replica_bytes"].get<std::int64_t>()),
                     human_size(v["largest_sender_bytes"].get<std::int64_t>()));
  out << fmt::format("receive buffer       {} rows, {} in BF16\n", plan.row_capacity,
                     human_size(v["receive_buffer_bytes"].get<std::int64_t>()));
  out << fmt::format("replica pools        {}\n", human_size(v["replica_pool_bytes"].get<std::int64_t>()));
  if (o.topk > 0) {
    out << fmt::format("dispatch per rank    {} to {:.2f} distinct ranks per token ({} without de-duplication)\n",
                       human_size(v["dispatch_bytes_per_rank"].get<std::int64_t>()),
                       v["distinct_ranks_per_token"].get<double>(),
                       human_size(v["dispatch_bytes_without_deduplication"].get<std::int64_t>()));
  }
}

}  // namespace

int run_moonep_command(const MoonepCommandOptions& options, std::ostream& out, std::ostream& err) {
  check_options(options);
  const ExpertCounts counts = choose_counts(options);
  if (options.topk > 0) {
    const std::vector<std::string> conflicts = topk_conflicts(counts, options.topk);
    for (std::size_t i = 0; i < std::min<std::size_t>(conflicts.size(), 5); ++i) {
      err << "warning: " << options.counts_file << ": " << conflicts[i] << '\n';
    }
  }
  PlannerOptions planner;
  planner.pad_rows = options.pad_rows;
  planner.tolerance = options.tolerance;
  planner.domain_ranks = options.domain_ranks;
  const MoonepPlan plan = plan_moonep(counts, planner);
  if (options.json) {
    out << plan_json(options, counts, plan).dump() << '\n';
  } else {
    print_plan(options, counts, plan, out);
  }
  return 0;
}

void add_moonep_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, "moonep", "plan expert placement for given token counts",
                                  "k3sim moonep --counts counts.csv --experts 896 --ranks 64 --topk 16");
  const auto o = std::make_shared<MoonepCommandOptions>();
  command
      ->add_option("--counts", o->counts_file, "CSV with the columns rank,expert,tokens (optionally layer,micro_batch)")
      ->required();
  command->add_option("--experts", o->experts, "routed experts of the layer")->required();
  command->add_option("--ranks", o->ranks, "ranks of the expert-parallel group")->required();
  command->add_option("--topk", o->topk, "experts per token, for the volumes");
  command->add_option("--layer", o->layer, "layer to plan when the file has several");
  command->add_option("--micro-batch", o->micro_batch, "micro-batch to plan when the file has several");
  command->add_option("--pad", o->pad_rows, "rows that every group is padded to")->capture_default_str();
  command->add_option("--tolerance", o->tolerance, "load above the cap that is left alone, for example 0.05");
  command->add_option("--domain", o->domain_ranks, "ranks per NVLink domain; receivers there are preferred");
  command->add_option("--width", o->width, "values per row")->capture_default_str();
  command->add_option("--intermediate", o->intermediate, "intermediate width of an expert")->capture_default_str();
  add_json_flag(*command, context);
  command->callback([o, &context] {
    o->json = context.json;
    context.exit_code = run_moonep_command(*o, context.out, context.err);
  });
}

}  // namespace k3sim
