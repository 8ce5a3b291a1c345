#include "models/build/machine_loader.h"

#include <map>

#include "models/config/data_files.h"
#include "models/cost/roofline.h"
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

struct Peaks { double bf16, fp8, hbm, mem_gib; int sms; const char* coll; };
const std::map<std::string, Peaks>& peaks() {
  static const std::map<std::string, Peaks> p{
      {"a100_sxm_80", {312, 312, 2.04, 79.15, 108, "a100_sxm"}}, {"a100_sxm_40", {312, 312, 1.555, 39.5, 108, "a100_sxm"}},
      {"a100_pcie_80", {312, 312, 1.94, 79.15, 108, "a100_sxm"}}, {"a800_sxm_80", {312, 312, 2.04, 79.15, 108, "a100_sxm"}},
      {"h100_sxm", {989.4, 1978.9, 3.35, 79.11, 132, "h100_sxm"}}, {"h100_sxm_96_hbm2e", {989.4, 1978.9, 2.4, 94, 132, "h100_sxm"}},
      {"h800_sxm", {989.4, 1978.9, 3.35, 79.11, 132, "h800_sxm"}}, {"h200_sxm", {989.4, 1978.9, 4.8, 139.8, 132, "h200_sxm"}},
      {"h20", {148, 296, 4.0, 95, 78, "h20"}}, {"b200_sxm", {2250, 4500, 7.7, 179, 148, "b200_sxm"}},
      {"gb200", {2500, 5000, 8, 185, 152, "gb200"}}, {"gb300", {2500, 5000, 8, 280, 152, "gb200"}}};
  return p;
}

}  // namespace

Machine load_machine(const Scenario& scenario) {
  const ClusterConfig& c = scenario.cluster;
  Machine m;
  const Peaks& p = peaks().at(c.gpu);
  m.gpu = {c.gpu, p.sms, FlopRate(p.bf16 * 1e12), FlopRate(p.fp8 * 1e12), Bandwidth(p.hbm * 1e12), Bandwidth(28e9),
           Bytes::ceil(p.mem_gib * 1073741824.0), 3.0};
  m.cost = std::make_shared<RooflineCost>(RooflinePeaks{m.gpu.bf16_dense, m.gpu.fp8_dense, m.gpu.hbm});
  m.comm = load_comm_model(profile_path("hardware_profiles/collectives", p.coll, "cluster.gpu"));
  m.comm.scale_out = load_scale_out(profile_path("hardware_profiles/fabric", c.fabric, "cluster.fabric"));
  if (c.nic_override) {
    const double share = m.comm.scale_out.all_to_all_payload / m.comm.scale_out.nic_payload;
    m.comm.scale_out.nic_payload = *c.nic_override;
    m.comm.scale_out.all_to_all_payload = *c.nic_override * share;
  }
  m.software = load_software_profile(profile_path("hardware_profiles/software", scenario.software, "software"));
  return m;
}

const Machine& MachineCache::get(const Scenario& scenario) {
  const ClusterConfig& c = scenario.cluster;
  const std::string key = c.gpu + "|" + c.fabric + "|" + scenario.software + "|" +
                          std::to_string(c.nic_override ? c.nic_override->value() : 0.0);
  for (const auto& [k, machine] : machines_)
    if (k == key) return *machine;
  machines_.emplace_back(key, std::make_unique<Machine>(load_machine(scenario)));
  return *machines_.back().second;
}

}  // namespace k3sim
