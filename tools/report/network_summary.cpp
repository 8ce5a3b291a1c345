// See network_summary.h. Source: engine-design section 18.
#include "tools/report/network_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace k3sim {

using Json = nlohmann::ordered_json;

namespace {

double rounded(double v) {
  return v == 0 ? 0.0 : std::stod(fmt::format("{:.9g}", v));
}

const char* name_of(NetworkUnfolding u) {
  constexpr std::array<const char*, 3> kNames{"none", "ranks", "flows"};
  return kNames[static_cast<std::size_t>(u)];
}

}  // namespace

Json network_json(const StepNetworkReport& n) {
  Json j;
  j["mode"] = n.flows ? "flows" : "closed_form";
  if (!n.flows) return j;
  j["unfolding"] = name_of(n.unfolding);
  j["unfold_reason"] = n.unfold_reason;
  j["communications"] = n.communications;
  j["completions"] = n.completions;
  j["links"] = n.links;
  j["deciding_links"] = n.kept_links;
  Json lost, alone;
  for (const TrafficLoss& l : n.losses) {
    lost[l.kind] = rounded(l.lost);
    alone[l.kind] = rounded(l.alone);
  }
  j["lost_s"] = std::move(lost);
  j["alone_s"] = std::move(alone);
  j["classes"] = Json::array();
  for (const LinkClassUsage& c : n.classes)
    j["classes"].push_back({{"class", to_string(c.kind)},
                            {"links", c.links},
                            {"links_used", c.used},
                            {"bytes", rounded(c.bytes)},
                            {"peak_utilisation", rounded(c.peak_utilisation)},
                            {"mean_utilisation", rounded(c.mean_utilisation)}});
  j["hottest"] = Json::array();
  for (const HotLink& h : n.hottest)
    j["hottest"].push_back({{"link", h.name},
                            {"alike", h.alike},
                            {"bytes", rounded(h.bytes)},
                            {"peak_utilisation", rounded(h.peak_utilisation)},
                            {"mean_utilisation", rounded(h.mean_utilisation)}});
  return j;
}

CsvTable network_table_csv(const StepNetworkReport& n) {
  CsvTable out(
      {{"scope", "text", "class: all links of a kind; link: one of the hottest; communication: a rank's traffic"},
       {"name", "text", "kind of links, link, or kind of communication"},
       {"links", "1", "links of the class, or links with exactly this load"},
       {"links_used", "1", "links of the class that carried something"},
       {"bytes", "byte", "carried during the step, on all links of the class or on this link"},
       {"peak_utilisation_pct", "%", "largest load at any time over capacity"},
       {"mean_utilisation_pct", "%", "bytes over what the used links could carry during the step"},
       {"alone_s", "s", "calibrated time of a rank's communications on a free network"},
       {"lost_s", "s", "time beyond that, because links were shared"}});
  const auto pct = [](double share) { return csv_number(100.0 * share); };
  for (const LinkClassUsage& c : n.classes)
    out.add({"class", to_string(c.kind), std::to_string(c.links), std::to_string(c.used), csv_number(c.bytes),
             pct(c.peak_utilisation), pct(c.mean_utilisation), "", ""});
  for (const HotLink& h : n.hottest)
    out.add({"link", h.name, std::to_string(h.alike), "", csv_number(h.bytes), pct(h.peak_utilisation),
             pct(h.mean_utilisation), "", ""});
  for (const TrafficLoss& l : n.losses)
    out.add({"communication", l.kind, "", "", "", "", "", csv_number(l.alone), csv_number(l.lost)});
  return out;
}

std::string unfolding_text(const StepNetworkReport& n) {
  if (n.unfolding == NetworkUnfolding::ranks)
    return fmt::format("unfolded: every rank simulated, because {}", n.unfold_reason);
  if (n.unfolding == NetworkUnfolding::flows)
    return fmt::format(
        "unfolded on the network: all ranks' bytes on their own links, because {}; equal compute is shared, a stage "
        "waits for its slowest rank",
        n.unfold_reason);
  return {};
}

std::string network_text(const StepNetworkReport& n, double step_s) {
  if (!n.flows) return "  network: closed forms, every communication alone\n";
  std::string out = fmt::format("  network: {} communications as flows, {:.3f} s lost to sharing per rank ({:.2f} %)",
                                n.communications, n.lost(), 100.0 * n.lost() / step_s);
  if (!n.hottest.empty())
    out += fmt::format(", fullest {} at {:.0f} % in the mean", n.hottest.front().name,
                       100.0 * n.hottest.front().mean_utilisation);
  out += "\n";
  if (n.unfolding != NetworkUnfolding::none) out += "  " + unfolding_text(n) + "\n";
  return out;
}

}  // namespace k3sim
