// What the step did to the network: bytes, peaks, hottest links, time lost. Source: engine-design section 18.
#include <algorithm>

#include "models/build/step_network.h"
#include "sim/base/check.h"

namespace k3sim {

namespace {

constexpr std::size_t kShownLinks = 12;
constexpr std::array<const char*, 6> kKinds{"tp", "cp", "ep", "pp", "dp", "offload"};

std::size_t kind_of(StepTask t) {
  switch (t) {
    case StepTask::tp_comm:
      return 0;
    case StepTask::cp_comm:
      return 1;
    case StepTask::ep_comm:
      return 2;
    case StepTask::transfer:
      return 3;
    case StepTask::offload:
    case StepTask::onload:
      return 5;
    default:
      return 4;
  }
}

}  // namespace

double StepNetworkReport::lost() const {
  double sum = 0;
  for (const TrafficLoss& l : losses) sum += l.lost;
  return sum;
}

StepNetworkReport StepNetwork::report() const {
  CS_CHECK(progress_ != nullptr, "a network that has not run");
  StepNetworkReport out;
  out.flows = true;
  out.links = topology_.links.size();
  out.kept_links = reduction_.kept.size();
  out.communications = work_.jobs.size();
  out.completions = progress_->engine().stats().completions;
  report_links(out);
  report_losses(out);
  return out;
}

// Bytes of every link follow from the patterns; peaks were recorded on the kept links, and no other link of a class is
// ever fuller than those.
void StepNetwork::report_links(StepNetworkReport& out) const {
  std::vector<double> by_pattern(patterns_.patterns().size(), 0.0), bytes(topology_.links.size(), 0.0);
  for (const FlowShape& s : shapes_)
    for (const auto& piece : s.terms)
      for (const TrafficPatterns::Term& t : piece) by_pattern[t.pattern] += t.bytes * static_cast<double>(s.runs);
  for (std::size_t p = 0; p < by_pattern.size(); ++p)
    for (const LinkLoad& l : patterns_.patterns()[p]) bytes[l.link] += l.load * by_pattern[p];
  std::array<LinkClassUsage, kLinkClasses> classes{};
  const double seconds = std::max(makespan_.seconds(), 1e-12);
  for (std::size_t l = 0; l < topology_.links.size(); ++l) {
    LinkClassUsage& c = classes[static_cast<std::size_t>(topology_.links[l].kind)];
    c.kind = topology_.links[l].kind;
    ++c.links;
    if (bytes[l] <= 0) continue;
    ++c.used;
    c.bytes += bytes[l];
    c.mean_utilisation += bytes[l] / (topology_.links[l].capacity.value() * seconds);
  }
  const auto usage = progress_->engine().usage();
  for (std::size_t k = 0; k < reduction_.kept.size(); ++k) {
    const std::uint32_t l = reduction_.kept[k].link;
    const double capacity = topology_.links[l].capacity.value();
    const double peak = usage[k].peak_load / capacity;
    LinkClassUsage& c = classes[static_cast<std::size_t>(topology_.links[l].kind)];
    c.peak_utilisation = std::max(c.peak_utilisation, peak);
    out.hottest.push_back({topology_.link_name(LinkId(std::size_t{l})), bytes[l], peak, bytes[l] / (capacity * seconds),
                           reduction_.kept[k].alike});
  }
  for (LinkClassUsage& c : classes) {
    if (c.used > 0) c.mean_utilisation /= static_cast<double>(c.used);
    if (c.links > 0) out.classes.push_back(c);
  }
  std::stable_sort(out.hottest.begin(), out.hottest.end(),
                   [](const HotLink& a, const HotLink& b) { return a.mean_utilisation > b.mean_utilisation; });
  if (out.hottest.size() > kShownLinks) out.hottest.resize(kShownLinks);
}

void StepNetwork::report_losses(StepNetworkReport& out) const {
  for (const char* kind : kKinds) out.losses.push_back({kind, 0, 0});
  const double ranks = static_cast<double>(graph_.compute_stream.size() * graph_.replicas.size());
  for (std::size_t j = 0; j < work_.jobs.size(); ++j) {
    double alone = 0;
    for (const Traffic& t : graph_.traffics[shapes_[work_.jobs[j].plan].traffic].pieces) alone += t.alone.seconds();
    TrafficLoss& l = out.losses[kind_of(kind_of_job_[j])];
    const double share = work_.jobs[j].members / ranks;
    l.alone += alone * share;
    l.lost += std::max(0.0, progress_->job_times()[j].seconds() - alone) * share;
  }
}

}  // namespace k3sim
