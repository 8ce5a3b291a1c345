// See link_reduction.h. Links are compared within groups that are loaded by the same patterns.
// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#include "models/build/link_reduction.h"

#include <algorithm>
#include <map>

#include "sim/base/error.h"

namespace k3sim {

namespace {

struct Row {
  std::uint32_t link = 0;
  std::vector<double> load;  // over capacity, by pattern of the support
  double sum = 0;
};
using Support = std::pair<LinkClass, std::vector<std::uint32_t>>;

std::map<Support, std::vector<Row>> rows_by_support(const Topology& t, const std::vector<Pattern>& patterns) {
  std::vector<std::vector<std::pair<std::uint32_t, double>>> by_link(t.links.size());
  for (std::uint32_t p = 0; p < patterns.size(); ++p)
    for (const LinkLoad& l : patterns[p]) by_link[l.link].emplace_back(p, l.load);
  std::map<Support, std::vector<Row>> rows;
  for (std::uint32_t l = 0; l < by_link.size(); ++l) {
    if (by_link[l].empty()) continue;
    const double capacity = t.links[l].capacity.value();
    if (capacity <= 0)
      throw ConfigError("traffic has to cross " + t.link_name(LinkId(std::size_t{l})) + ", which is down", "network");
    Support support{t.links[l].kind, {}};
    Row row{l, {}, 0};
    for (const auto& [p, load] : by_link[l]) {
      support.second.push_back(p);
      row.load.push_back(load / capacity);
      row.sum += load / capacity;
    }
    rows[std::move(support)].push_back(std::move(row));
  }
  return rows;
}

constexpr double kRounding = 1 + 1e-12;

bool covers(const Row& a, const Row& b) {
  for (std::size_t i = 0; i < a.load.size(); ++i)
    if (b.load[i] > a.load[i] * kRounding) return false;
  return true;
}

void keep_undominated(std::vector<Row>& rows, std::vector<KeptLink>& kept) {
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.sum > b.sum || (a.sum == b.sum && a.link < b.link); });
  std::vector<std::pair<const Row*, std::size_t>> winners;
  for (const Row& row : rows) {
    const auto over =
        std::find_if(winners.begin(), winners.end(), [&](const auto& w) { return covers(*w.first, row); });
    if (over == winners.end())
      winners.emplace_back(&row, 1);
    else if (covers(row, *over->first))
      ++over->second;
  }
  for (const auto& [row, alike] : winners) kept.push_back({row->link, alike});
}

}  // namespace

LinkReduction reduce_links(const Topology& topology, const std::vector<Pattern>& patterns) {
  LinkReduction out;
  for (auto& [support, rows] : rows_by_support(topology, patterns)) keep_undominated(rows, out.kept);
  std::sort(out.kept.begin(), out.kept.end(), [](const KeptLink& a, const KeptLink& b) { return a.link < b.link; });
  std::vector<std::uint32_t> index(topology.links.size(), kNoLink);
  for (std::uint32_t i = 0; i < out.kept.size(); ++i) index[out.kept[i].link] = i;
  for (const Pattern& p : patterns) {
    Pattern& few = out.patterns.emplace_back();
    for (const LinkLoad& l : p)
      if (index[l.link] != kNoLink) few.push_back({index[l.link], l.load});
  }
  return out;
}

}  // namespace k3sim
