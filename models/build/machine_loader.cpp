// Profiles by name, with a suggestion for an unknown one. Source: product-spec section 3 (cluster, software).
#include "models/build/machine_loader.h"

#include "models/comm/fabric_loader.h"
#include "models/config/data_files.h"
#include "models/config/yaml_reader.h"
#include "models/cost/gpu_profile.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

namespace {

std::string profile_path(const std::string& folder, const std::string& name, const char* key) {
  const std::vector<std::string> known = known_names(folder);
  for (const std::string& k : known)
    if (k == name) return data_path(folder + "/" + name + ".yaml");
  throw ConfigError({Problem{{}, key, "no profile '" + name + "' in " + folder, did_you_mean(name, known)}});
}

// Copies of all GPUs in both directions share the node's memory.
void read_host(const std::string& path, Machine& m) {
  const YamlDocument doc = YamlDocument::load(path);
  Bandwidth per_socket;
  int sockets = 1;
  doc.root().read("memory", m.host.memory);
  doc.root().read("dram", per_socket);
  doc.root().read("sockets", sockets);
  doc.root().read("gpus", m.host.gpus);
  doc.throw_if_problems();
  m.host.dram = per_socket * static_cast<double>(sockets);
  const Bandwidth share = m.host.dram * (0.5 / m.host.gpus);
  if (share.value() > 0 && share < m.gpu.host_link) m.gpu.host_link = share;
}

// Frameworks that call FlashAttention-2 use it up to Hopper; on Blackwell they take cuDNN's kernel.
CostOptions kernel_choice(const GpuProfile& gpu, const SoftwareProfile& software) {
  CostOptions options;
  if (gpu.architecture != "blackwell" && gpu.curves.count("attention_" + software.attention_kernel + "_forward") > 0)
    options.attention = software.attention_kernel;
  options.sustained_burst = software.sustained_burst;
  return options;
}

}  // namespace

Machine load_machine(const Scenario& scenario) {
  const ClusterConfig& c = scenario.cluster;
  Machine m;
  const GpuProfile profile = load_gpu_profile(c.gpu);
  m.gpu = gpu_limits(profile);
  m.comm = load_comm_model(profile_path("hardware_profiles/collectives", profile.collectives, "cluster.gpu"));
  m.comm.scale_out = load_scale_out(profile_path("hardware_profiles/fabric", c.fabric, "cluster.fabric"));
  if (c.nic_override) {
    const double share = m.comm.scale_out.all_to_all_payload / m.comm.scale_out.nic_payload;
    m.comm.scale_out.nic_payload = *c.nic_override;
    m.comm.scale_out.all_to_all_payload = *c.nic_override * share;
  }
  read_host(profile_path("hardware_profiles/node", c.node, "cluster.node"), m);
  m.host.copy_rate = profile.host.single;
  m.host.copy_latency = profile.host.latency;
  m.slowdown = profile.slowdown;
  ClusterQuestion question;
  question.gpu = profile.collectives;
  question.node = c.node;
  question.fabric = c.fabric;
  question.nic_override = c.nic_override;
  m.cluster = load_cluster(question);
  m.software = load_software_profile(profile_path("hardware_profiles/software", scenario.software, "software"));
  m.cost = make_cost_model(profile, kernel_choice(profile, m.software));
  m.software.host_launch = scale(m.software.host_launch, m.software.host_factor);
  m.software.host_action = scale(m.software.host_action, m.software.host_factor);
  const double generation = profile.architecture == "hopper"      ? m.software.hopper_efficiency
                            : profile.architecture == "blackwell" ? m.software.blackwell_efficiency
                                                                  : 1.0;
  m.software.matmul_efficiency *= generation;
  m.software.attention_efficiency *= generation;
  return m;
}

const Machine& MachineCache::get(const Scenario& scenario) {
  const ClusterConfig& c = scenario.cluster;
  const std::string key = c.gpu + "|" + c.fabric + "|" + c.node + "|" + scenario.software + "|" +
                          std::to_string(c.nic_override ? c.nic_override->value() : 0.0);
  for (const auto& [k, machine] : machines_)
    if (k == key) return *machine;
  machines_.emplace_back(key, std::make_unique<Machine>(load_machine(scenario)));
  return *machines_.back().second;
}

}  // namespace k3sim
