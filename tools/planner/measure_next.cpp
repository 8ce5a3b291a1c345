#include "tools/planner/measure_next.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "sim/graph/critical_path.h"

namespace k3sim {

namespace {

constexpr double kMeasured = 0.03;

double least_error(Provenance p) {
  switch (p) {
    case Provenance::measured:
      return kMeasured;
    case Provenance::fitted:
      return 0.05;
    case Provenance::boundary:
    case Provenance::borrowed:
      return 0.15;
    case Provenance::datasheet:
      return 0.30;
    case Provenance::assumed:
    case Provenance::missing:
      break;
  }
  return 0.50;
}

// Remembers the shapes that another cost model was asked for.
class ShapeRecorder final : public CostModel {
 public:
  using Key = std::tuple<std::string, Pass, double>;  // name, pass, FLOPs
  explicit ShapeRecorder(std::shared_ptr<const CostModel> base) : base_(std::move(base)) {}
  KernelTime time(const Kernel& kernel) const override {
    const KernelTime t = base_->time(kernel);
    const std::lock_guard<std::mutex> lock(mutex_);
    shapes_[{kernel.name, kernel.pass, kernel.flops.value()}].emplace_back(kernel, t.time);
    return t;
  }
  // Times of items are the cost model's, scaled by the software stack: of several, the shape whose time is nearest.
  const Kernel* find(const TimedItem& item) const {
    const auto found = shapes_.find({item.name, item.pass, item.flops.value()});
    if (found == shapes_.end()) return nullptr;
    const auto distance = [&](const auto& shape) {
      return std::abs(std::log(std::max(1e-12, shape.second.seconds()) / std::max(1e-12, item.time.seconds())));
    };
    return &std::min_element(found->second.begin(), found->second.end(), [&](const auto& x, const auto& y) {
              return distance(x) < distance(y);
            })->first;
  }

 private:
  std::shared_ptr<const CostModel> base_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::vector<std::pair<Kernel, Time>>> shapes_;
};

std::string shape_text(const Kernel& k) {
  std::vector<std::string> parts;
  const std::pair<const char*, std::int64_t> dimensions[] = {{"G", k.groups > 1 ? k.groups : 0},
                                                             {"M", k.m},
                                                             {"N", k.n},
                                                             {"K", k.k},
                                                             {"B", k.batch},
                                                             {"H", k.heads},
                                                             {"Sq", k.seq_q},
                                                             {"Sk", k.seq_k},
                                                             {"Dqk", k.dim_qk},
                                                             {"Dv", k.dim_v}};
  for (const auto& [name, value] : dimensions)
    if (value > 0) parts.push_back(fmt::format("{}={}", name, value));
  if (parts.empty()) parts.push_back(fmt::format("bytes={}", k.bytes.count()));
  return fmt::format("{}", fmt::join(parts, ";"));
}

constexpr const char* kComms[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                  "dispatch",   "combine",    "ring_exchange"};
constexpr const char* kGroups[] = {"tp", "cp", "ep", "etp", "pp", "dp", "expert_dp"};

struct Entry {
  MeasureNext next;
  double seconds = 0, error = 0;  // error: relative
  int family = 0;
};

// The item behind every label of a pass.
std::vector<const TimedItem*> label_items(const StepGraph& graph) {
  std::vector<const TimedItem*> out;
  std::size_t at = 0;
  for (std::size_t l = 0; l < graph.labels.size(); ++l) {
    const TaskLabel& label = graph.labels[l];
    const bool same = l > 0 && label.pass == graph.labels[l - 1].pass && label.chunk == graph.labels[l - 1].chunk &&
                      label.part == graph.labels[l - 1].part;
    at = same ? at + 1 : 0;
    if (label.pass && at == label.pass->items.size()) at = 0;
    out.push_back(label.pass && at < label.pass->items.size() ? &label.pass->items[at] : nullptr);
  }
  return out;
}

Entry entry_of(const TimedItem& item, const ShapeRecorder& shapes, const StepPlan& plan) {
  Entry e;
  e.next.collective = item.is_comm;
  e.next.provenance = item.provenance;
  e.error = std::max(item.p95_ratio - 1.0, least_error(item.provenance));
  if (item.is_comm) {
    const auto kind = static_cast<std::size_t>(item.comm), group = static_cast<std::size_t>(item.group);
    e.family = kKernelFamilies + static_cast<int>(kind);
    e.next.what = fmt::format("{} over {}", kComms[kind], kGroups[group]);
    e.next.shape = fmt::format("bytes={};ranks={}", item.buffer.count(), plan.placement->group(item.group).ranks);
    return e;
  }
  e.family = static_cast<int>(item.family);
  e.next.what = fmt::format("{} {} {}", to_string(item.family), item.name, to_string(item.pass));
  const Kernel* k = shapes.find(item);
  e.next.shape = k ? shape_text(*k) : fmt::format("flops={:.4g}", item.flops.value());
  return e;
}

// Time on the critical path by what runs there.
std::vector<Entry> path_entries(const StepPrediction& p, const ShapeRecorder& shapes) {
  const TaskGraph& g = p.graph->built.graph;
  const std::vector<const TimedItem*> items = label_items(*p.graph);
  std::map<std::pair<std::string, std::string>, Entry> entries;
  for (const TaskId t : critical_path(g, *p.times).tasks) {
    const std::uint32_t tag = g.tag(t);
    if (tag >= items.size() || !items[tag]) continue;
    Entry e = entry_of(*items[tag], shapes, *p.plan);
    Entry& sum = entries.try_emplace({e.next.what, e.next.shape}, e).first->second;
    sum.seconds += (p.times->finish[t.value] - p.times->start[t.value]).seconds();
  }
  std::vector<Entry> out;
  for (auto& [key, e] : entries) out.push_back(std::move(e));
  return out;
}

double bar_of(const std::map<int, double>& families) {
  double sum = 0;
  for (const auto& [family, error] : families) sum += error * error;
  return std::sqrt(sum);
}

}  // namespace

MeasurementPlan measure_next(const Scenario& scenario, const Machine& machine, bool allow_assumed, std::size_t most) {
  Machine recorded = machine;
  const auto shapes = std::make_shared<ShapeRecorder>(machine.cost);
  recorded.cost = shapes;
  StepOptions options;
  options.graph.detail = StepGraphOptions::Detail::kernel;
  options.keep_graph = true;
  options.allow_assumed = allow_assumed;
  options.memory.emulated_ranks = 0;
  const StepPrediction p = predict_step(scenario, recorded, options);
  const double step = p.summary.step.seconds();
  std::vector<Entry> entries = path_entries(p, *shapes);
  std::map<int, double> families;
  for (const Entry& e : entries) families[e.family] += e.seconds / step * e.error;
  MeasurementPlan plan;
  const double bar = bar_of(families);
  plan.bar_pct = 100.0 * bar;
  for (Entry& e : entries) {
    const double share = e.seconds / step;
    std::map<int, double> after = families;
    after[e.family] -= share * std::max(0.0, e.error - kMeasured);
    e.next.share_pct = 100.0 * share;
    e.next.error_pct = 100.0 * e.error;
    e.next.narrows_pct = 100.0 * (bar - bar_of(after));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.next.narrows_pct > b.next.narrows_pct; });
  for (const Entry& e : entries) {
    if (plan.list.size() == most || e.next.narrows_pct <= 0) break;
    families[e.family] -= e.next.share_pct / 100.0 * std::max(0.0, e.error - kMeasured);
    plan.list.push_back(e.next);
  }
  plan.after_pct = 100.0 * bar_of(families);
  return plan;
}

}  // namespace k3sim
