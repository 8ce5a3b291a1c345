// Drawing of a topology: one server with its inner links, then leaves, spine layers and core. At most twelve boxes of
// a row are drawn, the rest is counted; line width grows with the capacity, layers below what is under them are red.
// Source: product-spec section 2 (topology show). Plain SVG 1.1, no script, no fonts beyond the generic ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/commands/topology_command.h"

namespace k3sim {
namespace {

constexpr int kWidth = 1180, kHeight = 560;
constexpr int kNodeLeft = 40, kNodeWidth = 480, kFabricLeft = 580, kFabricWidth = 560;
constexpr int kMaxBoxes = 12;

struct Point {
  double x, y;
};

class Drawing {
 public:
  void box(Point centre, double w, double h, const char* fill, const std::string& text) {
    boxes_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"#444\"/>\n",
        centre.x - w / 2, centre.y - h / 2, w, h, fill);
    label({centre.x, centre.y + 4}, text, 11);
  }
  void label(Point at, const std::string& text, int size, const char* anchor = "middle") {
    boxes_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y,
                          size, anchor, text);
  }
  void line(Point a, Point b, Bandwidth rate, bool narrow, const std::string& title) {
    const double width = rate.value() <= 0 ? 1 : std::clamp(0.8 * std::log2(1 + rate.value() / 20e9), 0.8, 8.0);
    const char* colour = rate.value() <= 0 ? "#bbb\" stroke-dasharray=\"4 3" : narrow ? "#c0392b" : "#5b7c99";
    lines_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:.1f}\"><title>{}</title></line>\n",
        a.x, a.y, b.x, b.y, colour, width, title);
  }
  std::string finish() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n{2}{3}"
        "</svg>\n",
        kWidth, kHeight, lines_, boxes_);
  }

 private:
  std::string lines_, boxes_;
};

Point in_row(int index, int count, int left, int width, double y) {
  return {left + width * (index + 0.5) / count, y};
}

std::string escape(std::string text) {
  for (std::size_t at = text.find('>'); at != std::string::npos; at = text.find('>', at + 4))
    text.replace(at, 1, "&gt;");
  return text;
}

std::string title_of(const Topology& t, std::uint32_t link) {
  const Link& l = t.links[link];
  return fmt::format("{}: {:.1f} GB/s, {} cable{}", escape(t.link_name(LinkId(static_cast<std::size_t>(link)))),
                     l.capacity.value() / kGB, l.cables, l.cables == 1 ? "" : "s");
}

void draw_link(Drawing& d, const Topology& t, std::uint32_t link, Point a, Point b, bool narrow = false) {
  d.line(a, b, t.links[link].capacity, narrow, title_of(t, link));
}

void draw_node(Drawing& d, const Topology& t) {
  const NodeSpec& n = t.spec.node;
  const NodeLinks& links = t.nodes.front();
  const int gpus = std::min(n.gpus, kMaxBoxes), nics = std::min(n.nics, kMaxBoxes);
  const int switches = (gpus + n.gpus_per_pcie_switch - 1) / n.gpus_per_pcie_switch;
  const int sockets = std::min(n.sockets, switches);
  const Point nvswitch{kNodeLeft + kNodeWidth / 2.0, 450};
  const auto at = [&](int i, int count, double y) { return in_row(i, count, kNodeLeft, kNodeWidth, y); };
  d.label({kNodeLeft, 40}, fmt::format("one of {} nodes: {}", t.spec.nodes, n.name), 15, "start");
  for (int g = 0; g < gpus; ++g) {
    const auto i = static_cast<std::size_t>(g);
    draw_link(d, t, links.nvlink_out[i], at(g, gpus, 360), nvswitch);
    draw_link(d, t, links.pcie_up[i], at(g, gpus, 360), at(g / n.gpus_per_pcie_switch, switches, 255));
  }
  for (int p = 0; p < switches; ++p) {
    const int socket = std::min(sockets - 1, t.socket_of(p * n.gpus_per_pcie_switch));
    draw_link(d, t, links.host_up[static_cast<std::size_t>(p)], at(p, switches, 255), at(socket, sockets, 510),
              n.uplinks_per_pcie_switch < n.gpus_per_pcie_switch);
  }
  for (int k = 0; k < nics; ++k) {
    const int below = std::min(switches - 1, t.pcie_switch_of(k * n.gpus / n.nics));
    draw_link(d, t, links.nic_in[static_cast<std::size_t>(k)], at(below, switches, 255), at(k, nics, 150));
  }
  for (int g = 0; g < gpus; ++g)
    d.box(at(g, gpus, 360), 0.8 * kNodeWidth / gpus, 30, "#dcead2", fmt::format("GPU {}", g));
  for (int p = 0; p < switches; ++p) d.box(at(p, switches, 255), 0.8 * kNodeWidth / switches, 24, "#eeeeee", "PCIe");
  for (int k = 0; k < nics; ++k)
    d.box(at(k, nics, 150), 0.8 * kNodeWidth / nics, 26, "#fbe8c8", fmt::format("NIC {}", k));
  for (int s = 0; s < sockets; ++s) {
    d.box(at(s, sockets, 510), 0.5 * kNodeWidth / sockets, 28, "#e6e0f0",
          fmt::format("socket {} + {:.0f} GB/s", s, n.dram.value() / kGB));
  }
  d.box(nvswitch, 0.9 * kNodeWidth, 30, "#cfe3f7",
        fmt::format("NVSwitch, {:.0f} GB/s per GPU", n.nvlink.value() / kGB));
  if (n.gpus > gpus) d.label({nvswitch.x, 385}, fmt::format("and {} more GPUs", n.gpus - gpus), 11);
}

void draw_fabric(Drawing& d, const Topology& t) {
  const int leaves = static_cast<int>(std::min<std::size_t>(t.leaves.size(), kMaxBoxes));
  const int groups = static_cast<int>(std::min<std::size_t>(t.groups.size(), kMaxBoxes));
  const bool narrow_leaf = t.spec.fabric.oversubscription > 1, narrow_core = t.spec.fabric.core_oversubscription > 1;
  const auto at = [&](int i, int count, double y) { return in_row(i, count, kFabricLeft, kFabricWidth, y); };
  const auto shown = [&](int i) {
    return static_cast<std::size_t>(i) * t.leaves.size() / static_cast<std::size_t>(leaves);
  };
  const Point core{kFabricLeft + kFabricWidth / 2.0, 110};
  d.label({kFabricLeft, 40},
          fmt::format("{}: {} leaf, {} spine, {} core switches", t.spec.fabric.name, t.leaf_switches, t.spine_switches,
                      t.core_switches),
          15, "start");
  for (int l = 0; l < leaves; ++l) {
    const LeafLinks& leaf = t.leaves[shown(l)];
    if (leaf.group < groups)
      draw_link(d, t, leaf.up.front(), at(l, leaves, 400), at(leaf.group, groups, 250), narrow_leaf);
  }
  for (int g = 0; g < groups && t.tiers == 3; ++g) {
    draw_link(d, t, t.groups[static_cast<std::size_t>(g)].up.front(), at(g, groups, 250), core, narrow_core);
  }
  for (int l = 0; l < leaves; ++l)
    d.box(at(l, leaves, 400), 0.85 * kFabricWidth / leaves, 26, "#fbe8c8", fmt::format("L{}", shown(l)));
  for (int g = 0; g < groups; ++g)
    d.box(at(g, groups, 250), 0.85 * kFabricWidth / groups, 30, "#f7d7d2", fmt::format("spine {}", g));
  if (t.tiers == 3) d.box(core, 0.6 * kFabricWidth, 30, "#e6c8e0", fmt::format("core, {} switches", t.core_switches));
  if (t.leaves.size() > kMaxBoxes)
    d.label({core.x, 435}, fmt::format("and {} more leaves", t.leaves.size() - kMaxBoxes), 11);
  if (t.groups.size() > kMaxBoxes)
    d.label({core.x, 285}, fmt::format("and {} more spine layers", t.groups.size() - kMaxBoxes), 11);
  d.label({core.x, 470},
          fmt::format("each leaf: {} uplink cables of {:.1f} GB/s payload; {} routing",
                      t.links[t.leaves.front().up.front()].cables * t.leaves.front().up.size(),
                      t.spec.fabric.link_rate.value() * t.spec.fabric.payload_efficiency / kGB,
                      t.spec.fabric.routing == Routing::adaptive ? "adaptive" : "hashed"),
          12);
}

}  // namespace

std::string topology_svg(const Topology& topology) {
  Drawing d;
  draw_node(d, topology);
  if (!topology.leaves.empty()) draw_fabric(d, topology);
  return d.finish();
}

}  // namespace k3sim
