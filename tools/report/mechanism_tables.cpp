#include "tools/report/mechanism_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/transformer/context_parallel.h"
#include "tools/report/step_view.h"

namespace k3sim {

namespace {

std::string bytes(Bytes b) {
  return std::to_string(b.count());
}

std::string column_name(int category) {
  std::string name = to_string(static_cast<MemoryCategory>(category));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + "_bytes";
}

// The fullest action of each of `points` equal runs of bars.
std::vector<const ActionBar*> thinned(const RankView& view, const std::vector<MemoryStep>& steps, std::size_t points) {
  std::vector<const ActionBar*> all, out;
  for (const ActionBar& b : view.bars)
    if (b.action >= 0) all.push_back(&b);
  const std::size_t run = std::max<std::size_t>(1, (all.size() + points - 1) / std::max<std::size_t>(1, points));
  for (std::size_t i = 0; i < all.size(); i += run)
    out.push_back(*std::max_element(all.begin() + static_cast<std::ptrdiff_t>(i),
                                    all.begin() + static_cast<std::ptrdiff_t>(std::min(i + run, all.size())),
                                    [&](const ActionBar* a, const ActionBar* b) {
                                      return steps[static_cast<std::size_t>(a->action)].peak <
                                             steps[static_cast<std::size_t>(b->action)].peak;
                                    }));
  return out;
}

}  // namespace

CsvTable memory_timeline_table(const StepPrediction& p, std::size_t points) {
  std::vector<CsvColumn> columns{{"rank", "1", "pipeline rank"},
                                 {"time_s", "s", "end of the action since the start of the step"},
                                 {"action", "text", "action of the schedule"}};
  for (int c = 0; c < kMemoryCategories; ++c)
    columns.push_back({column_name(c), "byte", "allocated on the GPU when the action has ended"});
  columns.push_back({"peak_bytes", "byte", "allocated on the GPU, most at once during the action"});
  columns.push_back({"host_activations_bytes", "byte", "offloaded activations in host memory"});
  columns.push_back({"remote_activations_bytes", "byte", "activations kept by another pipeline rank"});
  CsvTable out(std::move(columns));
  const std::vector<RankView> views = step_view(p);
  for (std::size_t r = 0; r < views.size() && r < p.memory_over_time.size(); ++r)
    for (const ActionBar* bar : thinned(views[r], p.memory_over_time[r], points)) {
      const MemoryStep& m = p.memory_over_time[r][static_cast<std::size_t>(bar->action)];
      std::vector<std::string> row{std::to_string(r), csv_number(bar->finish.seconds()),
                                   to_string(p.plan->schedule.actions[r][static_cast<std::size_t>(bar->action)])};
      for (const Bytes b : m.live) row.push_back(bytes(b));
      for (const Bytes b : {m.peak, m.host, m.remote}) row.push_back(bytes(b));
      out.add(std::move(row));
    }
  return out;
}

std::vector<LayerOverlap> overlap_by_kind(const std::vector<LayerOverlap>& layers) {
  std::vector<LayerOverlap> out;
  const auto slack = [](const LayerOverlap& o) { return o.copy / std::max(Time::ps(1), o.forward); };
  for (const LayerOverlap& o : layers) {
    const auto it = std::find_if(out.begin(), out.end(), [&](const LayerOverlap& k) { return k.kind == o.kind; });
    if (it == out.end()) {
      out.push_back(o);
      continue;
    }
    const int count = it->layers + o.layers;
    if (slack(o) > slack(*it)) *it = o;
    it->layers = count;
  }
  return out;
}

CsvTable overlap_table(const StepPrediction& p) {
  CsvTable out({{"layer_kind", "text", "attention and feed-forward of the layer"},
                {"layers", "1", "layers of that kind; the figures are those of the one with the least slack"},
                {"host_bytes", "byte", "leaves for host memory per micro-batch"},
                {"remote_bytes", "byte", "leaves for another pipeline rank per micro-batch"},
                {"copy_s", "s", "time of the copies in one direction, all GPUs of the node busy"},
                {"forward_s", "s", "compute of the layer while they leave"},
                {"backward_s", "s", "compute of the layer while they return"},
                {"hides_out", "text", "copies are no longer than the forward"},
                {"hides_in", "text", "copies are no longer than the backward"}});
  for (const LayerOverlap& o : overlap_by_kind(p.overlap))
    out.add({o.kind, std::to_string(o.layers), bytes(o.host), bytes(o.remote), csv_number(o.copy.seconds()),
             csv_number(o.forward.seconds()), csv_number(o.backward.seconds()), o.hides_out() ? "yes" : "no",
             o.hides_in() ? "yes" : "no"});
  return out;
}

CsvTable context_ranks_table(const StepPrediction& p) {
  CsvTable out({{"context_rank", "1", "position in the context-parallel group"},
                {"tokens", "1", "tokens of one sequence on the rank"},
                {"causal_pairs", "1", "query-key pairs of softmax attention"},
                {"share", "1", "pairs over the mean of the ranks: 1 is even; the largest sets the pace"}});
  const Scenario& s = p.plan->scenario;
  const std::vector<std::int64_t> documents =
      s.batch.documents.empty() ? std::vector<std::int64_t>{s.batch.sequence} : s.batch.documents;
  const bool contiguous = s.parallel.cp == 1 || p.plan->split.cp_contiguous;
  const std::vector<double> pairs = causal_pairs(documents, s.parallel.cp, contiguous);
  const std::vector<double> shares = causal_shares(documents, s.parallel.cp, contiguous);
  for (std::size_t r = 0; r < pairs.size(); ++r)
    out.add({std::to_string(r), std::to_string(s.batch.sequence / s.parallel.cp), csv_number(pairs[r]),
             csv_number(shares[r])});
  return out;
}

std::string overlap_lines(const StepPrediction& p) {
  if (p.overlap.empty()) return {};
  std::string out = "\ncopies of kept tensors beside compute, tightest layer of each kind\n";
  for (const LayerOverlap& o : overlap_by_kind(p.overlap))
    out += fmt::format("  {:<17} {:>3} layers: {:.2f} GB in {:.1f} ms; forward {:.1f} ms {}, backward {:.1f} ms {}\n",
                       o.kind, o.layers, (o.host + o.remote).as_double() / 1e9, o.copy.seconds() * 1e3,
                       o.forward.seconds() * 1e3, o.hides_out() ? "hides them" : "does NOT hide them",
                       o.backward.seconds() * 1e3, o.hides_in() ? "hides them" : "does NOT hide them");
  return out;
}

}  // namespace k3sim
