// What a framework release adds to the hardware: a few physical constants per software stack, never per case.
// Read from hardware_profiles/software/NAME.yaml; every value carries its source there.
// Source: hardware notes sections 1.3, 5.5 (launch costs), 3.6 (interference); fitted on validation families.
#pragma once

#include <string>

#include "sim/base/units.h"

namespace k3sim {

struct SoftwareProfile {
  std::string name = "default";
  Time host_launch = Time::us(6);     // host time per kernel issued (framework operator), without graphs
  Time host_action = Time::us(150);   // host time per schedule action (Python of one forward or backward call)
  double host_factor = 1.0;           // interpreter and framework around an operator, over the launch and action times
  Time step_overhead = Time::ms(10);  // per step: data loader, loss reduction, optimizer set-up
  int fusion = 1;                     // SplitConfig::fusion
  bool flash_attention = true;
  std::string attention_kernel;  // "cudnn" or "fa2" where the stack's softmax kernel is not the GPU profile's
  bool dropout = false;
  bool gradient_accumulation_fusion = false;  // weight-gradient products add to the gradient buffers (Megatron)
  bool moe_permute_fusion = true;             // SplitConfig::permute_fusion
  bool multi_stream_experts = false;          // TransformerEngine's GroupedLinear: one cuBLAS call per expert
  double matmul_efficiency = 1.0;             // in-training GEMM rate over the isolated, short-run calibration
  double fp8_efficiency = 1.0;                // FP8 GEMM rate in training over isolated, beyond matmul_efficiency
  double hopper_efficiency = 1.0;     // kernel generation: matrix kernels on Hopper GPUs over the calibrated ones
  double blackwell_efficiency = 1.0;  // the same on Blackwell GPUs, over the datasheet tier
  Time sustained_burst;               // matrix kernels follow one another for seconds: throttled as this long a kernel
  double attention_efficiency = 1.0;  // kernel generation: attention rate over the profile's curve
  double memory_efficiency = 1.0;     // in-training bandwidth of memory-bound kernels over isolated
  double comm_efficiency = 1.0;       // collectives beside compute over stand-alone
  double compute_slowdown = 1.0;      // compute beside communication (SMs and HBM taken), >= 1
  double ep_efficiency = 1.0;         // expert dispatch and combine in training over stand-alone
  int ep_sms = 20;                    // SMs held by overlapped expert communication (DeepEP v1: 20)
  bool tp_overlap = false;            // ring-exchange overlap available
  bool grad_reduce_overlap = true;
  bool param_gather_overlap = true;
  bool p2p_overlap = true;
  bool ep_overlap = false;
  bool owner_updates = false;  // ZeRO-1 by whole tensors: reduced to, and broadcast from, the rank that owns each
  Bytes bucket = Bytes(160'000'000);            // gradient bucket
  Bytes context_memory = Bytes::mib(700);       // CUDA context and modules
  Bytes communicator_memory = Bytes::mib(400);  // NCCL buffers per communicator with more than one rank
  Bytes workspace_memory = Bytes::mib(256);     // cuBLAS and kernel workspaces
  double fragmentation = 0.04;                  // reserved over allocated - 1 where the allocator is not emulated
  std::string allocator_conf;                   // PYTORCH_ALLOC_CONF that the stack sets when the scenario says nothing
  bool fp8_keeps_wide_inputs = false;     // FP8 layers keep BF16 inputs and quantise again (torchao dynamic scaling)
  bool step_gradient_copy = false;        // FP32 copies of the shard's gradients in the optimizer step (FP16 stacks)
  bool dense_embedding_gradient = false;  // the embedding's weight gradient is first a tensor of the table's size
  bool dummy_weight_gradients = false;    // placeholder gradients of every weight shape stay (TransformerEngine 2)
  Bytes step_temporaries{0};       // per parameter of the shard during the optimizer step (unfused foreach Adam: 4)
  bool torch_loss = false;         // PyTorch's cross-entropy: more FP32 copies of the logits (SplitConfig)
  bool compiled_loss = false;      // the loss is one compiled kernel each way and keeps the logits alone
  bool tp_keeps_gathered = false;  // autograd keeps gathered inputs of tensor-parallel products (DTensor); with
                                   // overlapped (asynchronous) tensor parallelism only the shards
  bool torch_pipelining = false;   // torch.distributed.pipelining: receive buffers for every micro-batch, made once
                                   // per direction; outputs of all micro-batches stay until the next step
  bool ddp_buckets = false;        // DDP keeps buckets of all gradients in the parameters' type beside FP32 sums
  Bytes reduce_bytes{4};           // per parameter in the reduce-scatter input of FSDP
};

SoftwareProfile load_software_profile(const std::string& path);

}  // namespace k3sim
