// Reads hardware_profiles/software/NAME.yaml; fields in software_profile.h. Source: hardware_profiles/README.md.
#include "models/build/software_profile.h"

#include "models/config/yaml_reader.h"

namespace k3sim {

namespace {

void read_kernels(const YamlNode& kernels, SoftwareProfile& p) {
  kernels.read("fusion", p.fusion);
  kernels.read("flash_attention", p.flash_attention);
  kernels.read("attention", p.attention_kernel);
  kernels.read("dropout", p.dropout);
  kernels.read("gradient_accumulation_fusion", p.gradient_accumulation_fusion);
  kernels.read("moe_permute_fusion", p.moe_permute_fusion);
  kernels.read("multi_stream_experts", p.multi_stream_experts);
  kernels.read("matmul_efficiency", p.matmul_efficiency);
  kernels.read("fp8_efficiency", p.fp8_efficiency);
  kernels.read("hopper_efficiency", p.hopper_efficiency);
  kernels.read("blackwell_efficiency", p.blackwell_efficiency);
  kernels.read("sustained_burst", p.sustained_burst);
  kernels.read("attention_efficiency", p.attention_efficiency);
  kernels.read("memory_efficiency", p.memory_efficiency);
  const std::string& attention = p.attention_kernel;
  if (!attention.empty() && attention != "cudnn" && attention != "fa2")
    kernels.child("attention").problem("must be cudnn or fa2");
  if (p.fusion < 0 || p.fusion > 2) kernels.child("fusion").problem("must be 0, 1 or 2");
}

}  // namespace

SoftwareProfile load_software_profile(const std::string& path) {
  YamlDocument doc = YamlDocument::load(path);
  const YamlNode root = doc.root();
  SoftwareProfile p;
  root.require("name", p.name);
  root.child("source").accept_all();
  root.child("note").accept_all();
  const YamlNode host = root.child("host");
  host.read("launch", p.host_launch);
  host.read("action", p.host_action);
  host.read("factor", p.host_factor);
  host.read("step", p.step_overhead);
  read_kernels(root.child("kernels"), p);
  const YamlNode comm = root.child("communication");
  comm.read("efficiency", p.comm_efficiency);
  comm.read("compute_slowdown", p.compute_slowdown);
  comm.read("ep_efficiency", p.ep_efficiency);
  comm.read("ep_sms", p.ep_sms);
  comm.read("bucket", p.bucket);
  comm.read("owner_updates", p.owner_updates);
  const YamlNode overlap = root.child("overlap");
  overlap.read("tp", p.tp_overlap);
  overlap.read("grad_reduce", p.grad_reduce_overlap);
  overlap.read("param_gather", p.param_gather_overlap);
  overlap.read("p2p", p.p2p_overlap);
  overlap.read("ep", p.ep_overlap);
  const YamlNode memory = root.child("memory");
  memory.read("context", p.context_memory);
  memory.read("communicator", p.communicator_memory);
  memory.read("workspace", p.workspace_memory);
  memory.read("fragmentation", p.fragmentation);
  memory.read("allocator_conf", p.allocator_conf);
  memory.read("fp8_keeps_wide_inputs", p.fp8_keeps_wide_inputs);
  memory.read("step_gradient_copy", p.step_gradient_copy);
  memory.read("dense_embedding_gradient", p.dense_embedding_gradient);
  memory.read("dummy_weight_gradients", p.dummy_weight_gradients);
  memory.read("step_temporaries", p.step_temporaries);
  memory.read("torch_loss", p.torch_loss);
  memory.read("compiled_loss", p.compiled_loss);
  memory.read("tp_keeps_gathered", p.tp_keeps_gathered);
  memory.read("torch_pipelining", p.torch_pipelining);
  memory.read("ddp_buckets", p.ddp_buckets);
  memory.read("reduce_bytes", p.reduce_bytes);
  if (p.host_factor <= 0.0) host.child("factor").problem("must be above 0");
  if (p.compute_slowdown < 1.0) comm.child("compute_slowdown").problem("must be at least 1");
  doc.finish();
  return p;
}

}  // namespace k3sim
