// See the header. Source: engine-design notes section 18 (report sections).
#include "sim/net/network_report.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"

namespace k3sim {

NetworkReport network_report(const Topology& t, const FlowEngine& engine, Time duration, std::size_t hottest) {
  CS_CHECK(engine.usage().size() == t.links.size(), "usage of {} links, topology of {}", engine.usage().size(),
           t.links.size());
  NetworkReport report;
  report.stats = engine.stats();
  report.seconds_lost = report.stats.seconds_lost;
  const double seconds = std::max(duration.seconds(), 1e-12);
  std::array<LinkClassUsage, kLinkClasses> classes{};
  std::vector<std::uint32_t> used;
  const auto mean = [&](std::uint32_t l) { return engine.usage()[l].bytes / (t.links[l].capacity.value() * seconds); };
  for (std::uint32_t l = 0; l < t.links.size(); ++l) {
    const Link& link = t.links[l];
    LinkClassUsage& c = classes[static_cast<std::size_t>(link.kind)];
    c.kind = link.kind;
    ++c.links;
    if (engine.usage()[l].bytes <= 0) continue;
    used.push_back(l);
    ++c.used;
    c.bytes += engine.usage()[l].bytes;
    c.peak_utilisation = std::max(c.peak_utilisation, engine.usage()[l].peak_load / link.capacity.value());
    c.mean_utilisation += mean(l);
  }
  for (LinkClassUsage& c : classes) {
    if (c.used > 0) c.mean_utilisation /= static_cast<double>(c.used);
    if (c.links > 0) report.classes.push_back(c);
  }
  const std::size_t shown = std::min(hottest, used.size());
  std::partial_sort(
      used.begin(), used.begin() + static_cast<std::ptrdiff_t>(shown), used.end(),
      [&](std::uint32_t a, std::uint32_t b) { return mean(a) > mean(b) || (mean(a) == mean(b) && a < b); });
  for (std::size_t i = 0; i < shown; ++i) {
    const std::uint32_t l = used[i];
    report.hottest.push_back({t.link_name(LinkId(static_cast<std::size_t>(l))), engine.usage()[l].bytes,
                              engine.usage()[l].peak_load / t.links[l].capacity.value(), mean(l), 1});
  }
  return report;
}

}  // namespace k3sim
