// Beginnings of argument names that change neither the time nor the memory of a step: learning rates, paths, logging,
// checkpoints, tokenizers, and fusions that the software profile already stands for.
// Source: Megatron-LM megatron/training/arguments.py, Megatron-DeepSpeed, NeMo and Megatron-Bridge recipes.
#include <sstream>

#include "tools/import/launch_arguments.h"

namespace k3sim {
namespace {

constexpr const char* kBeginnings =
    "lr min-lr calculate-per-token empty-unused max-padding DDP-impl mcore-gpt max-steps max-epochs max-time "
    "enable-shared-expert hf-model-id "
    "type library accelerator limit-val val-check gradient-clip "
    " adam- muon- sgd- weight-decay start-weight-decay end-weight-decay clip-grad init-method "
    "embedding-init save load pretrained-checkpoint ckpt dist-ckpt auto-detect-ckpt async-save use-dist-ckpt "
    "use-checkpoint no-save no-load no-ckpt override- non-persistent finetune eval test- valid train-data "
    "train-iters train-samples train-tokens train-mode train-sync train-weighted num-epochs data-path "
    "data-cache data-args data-impl data-parallel-random per-split mock-data split dataset dataloader "
    "num-workers num-dataset reset- eod-mask no-create-attention create-attention no-mmap mmap tokenizer "
    "patch-tokenizer vocab-file merge-file vocab-extra legacy-tokenizer log tensorboard wandb timing report "
    "profile no-log use-pytorch-profiler nvtx record-memory memory-snapshot memory-tracing exit- kill-switch "
    "manual-gc seed rerun hysteresis initial-loss loss-scale min-loss fp16-lm attention-softmax "
    "attention-dropout hidden-dropout ffn-dropout lora-dropout norm-epsilon layernorm-epsilon "
    "apply-layernorm apply-query query-in rotary-base rotary-percent rotary-scaling rotary-seq rope-scaling "
    "use-rope-scaling mscale beta-fast beta-slow no-rope-fusion apply-rope no-position-embedding "
    "moe-aux-loss moe-z-loss moe-loss moe-input-jitter moe-router-bias-update moe-router-score "
    "moe-router-topk-scaling moe-router-load-balancing moe-router-pre-softmax moe-router-dtype "
    "moe-router-fusion moe-permute-fusion moe-grouped-gemm moe-use-legacy-grouped moe-per-layer moe-eval "
    "moe-min-capacity moe-token-drop-policy mtp-loss distributed-backend distributed-timeout dist-url "
    "local-rank rank node-rank master rdzv tee max-restarts hostfile force-multi use-mcore use-legacy "
    "transformer-impl use-flash-attn attention-backend no-persist persist-layer no-bias- bias-gelu "
    "bias-activation bias-dropout no-masked masked-softmax no-gradient-accumulation "
    "gradient-accumulation-fusion cross-entropy no-async-tensor no-check check-for no-initialization "
    "use-cpu-init abort-on enable-experimental enable-msc te-rng fp8-amax fp8-margin fp8-interval "
    "no-fp8-wgrad accumulate-allreduce ddp-bucket ddp-num-buckets ddp-average grad-reduce-in-fp32 align- "
    "deepspeed no-pipeline-parallel create-moe-param curriculum random-ltd synchronize zero-reduce "
    "zero-contigious zero-allgather distribute-saved use-tokenizer inference max-tokens-to-oom output-bert "
    "bert sample-rate mask-prob short-seq use-mp-args disable-mem-efficient dsv3 history rampup skip-train "
    "sft use-persistent replication config-logger error-injection enable-ft calc-ft nccl-communicator "
    "use-ring disable-straggler goodput app-tag run-workload decoupled warmup use-gloo enable-gloo "
    "apply-residual kv-cache nccl-ub overlap-p2p-warmup ";

}  // namespace

bool is_irrelevant_argument(const std::string& name) {
  std::istringstream words(kBeginnings);
  std::string beginning;
  while (words >> beginning)
    if (name.rfind(beginning, 0) == 0) return true;
  return false;
}

}  // namespace k3sim
