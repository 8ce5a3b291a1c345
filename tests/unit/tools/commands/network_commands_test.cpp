// k3sim collective and k3sim topology show: what they print and what they refuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"
#include "tools/commands/collective_command.h"
#include "tools/commands/topology_command.h"

using namespace k3sim;

namespace {

std::string collective(const CollectiveCommandOptions& o) {
  std::ostringstream out;
  CHECK(run_collective_command(o, out) == 0);
  return out.str();
}

std::string topology(const TopologyCommandOptions& o) {
  std::ostringstream out;
  CHECK(run_topology_command(o, out) == 0);
  return out.str();
}

// Time of the only row of a CSV answer.
double time_us(CollectiveCommandOptions o) {
  o.csv = true;
  o.from = o.to = "256 MiB";
  std::istringstream in(collective(o));
  std::string line;
  std::getline(in, line);
  std::getline(in, line);
  return std::atof(line.c_str() + line.find(',') + 1);
}

}  // namespace

TEST_CASE("collective command: one CSV line per size") {
  CollectiveCommandOptions o;
  o.csv = true;
  o.from = "1 MiB", o.to = "8 MiB";
  const std::string csv = collective(o);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);
  CHECK(csv.find("8388608,") != std::string::npos);
}

TEST_CASE(
    "collective command: flows agree with the closed form on a free network and share when there are two groups") {
  CollectiveCommandOptions o;
  o.operation = "all_gather";
  o.ranks = 64;
  const double closed = time_us(o);
  o.flows = true;
  CHECK(time_us(o) == doctest::Approx(closed).epsilon(0.02));
  o.groups = 2;
  CHECK(time_us(o) > 1.4 * closed);  // a quarter of the time is latency, which is not shared
}

TEST_CASE("collective command: a slow stack costs latency, forced algorithms change the time") {
  CollectiveCommandOptions o;
  const double tuned = time_us(o);
  o.slow_stack = true;
  CHECK(time_us(o) == doctest::Approx(tuned + 15.6).epsilon(0.01));
  CollectiveCommandOptions wide;
  wide.ranks = 256;
  const double chosen = time_us(wide);
  wide.algorithm = "ring", wide.protocol = "simple";
  CHECK(time_us(wide) > chosen);
}

TEST_CASE("collective command: wrong use is explained") {
  std::ostringstream out;
  CollectiveCommandOptions o;
  o.operation = "all_redcue";
  CHECK_THROWS_WITH_AS(run_collective_command(o, out), doctest::Contains("did you mean 'all_reduce'"), UsageError);
  o = {};
  o.ranks = 12;
  CHECK_THROWS_WITH_AS(run_collective_command(o, out), doctest::Contains("not a multiple"), UsageError);
  o = {};
  o.from = "12";
  CHECK_THROWS_AS(run_collective_command(o, out), UsageError);
  o = {};
  o.groups = 3;
  CHECK_THROWS_WITH_AS(run_collective_command(o, out), doctest::Contains("--flows"), UsageError);
  o = {};
  o.ranks = 16, o.algorithm = "pat", o.protocol = "ll";
  CHECK_THROWS_WITH_AS(run_collective_command(o, out), doctest::Contains("cannot run"), UsageError);
  o = {};
  o.gpu = "h1000";
  CHECK_THROWS_AS(run_collective_command(o, out), ConfigError);
}

TEST_CASE("topology command: the summary names switches, narrow layers and whether replicas fold") {
  TopologyCommandOptions o;
  o.nodes = 256;
  CHECK(topology(o).find("64 leaf, 32 spine, 0 core") != std::string::npos);
  CHECK(topology(o).find("can be folded") != std::string::npos);
  o.oversubscription = 2;
  CHECK(topology(o).find("oversubscribed 2:1") != std::string::npos);
  o.json = true;
  CHECK(topology(o).find("\"foldable\":false") != std::string::npos);
}

TEST_CASE("topology command: links can be listed and degraded by name") {
  TopologyCommandOptions o;
  o.nodes = 2;
  o.links = "n0.nic3>leaf3";
  o.faults = {"n0.nic3>leaf3=0.5"};
  CHECK(topology(o).find("24.2 GB/s") != std::string::npos);
  o.faults = {"n0.nic3>leaf3=half"};
  std::ostringstream out;
  CHECK_THROWS_AS(run_topology_command(o, out), UsageError);
}

TEST_CASE("topology command: the drawing is written and well formed") {
  const std::string file = (std::filesystem::temp_directory_path() / "k3sim_topology_test.svg").string();
  for (const char* fabric : {"rail_fat_tree_400g", "roce_leaf_spine_400g", "multi_plane_400g"}) {
    TopologyCommandOptions o;
    o.fabric = fabric;
    o.nodes = 70;
    o.svg = file;
    topology(o);
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const std::string svg = text.str();
    CHECK(svg.rfind("<svg", 0) == 0);
    CHECK(svg.find("NVSwitch") != std::string::npos);
    CHECK(svg.find("</svg>") == svg.size() - 7);
    CHECK(svg.find("nan") == std::string::npos);
  }
  std::filesystem::remove(file);
}
