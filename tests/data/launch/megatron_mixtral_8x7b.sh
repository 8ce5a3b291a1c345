GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"1"}
MODEL_ARGS=(--disable-bias-linear --seq-length 4096 --max-position-embeddings 32768 --num-layers 32 --hidden-size 4096
    --ffn-hidden-size 14336 --num-attention-heads 32 --normalization RMSNorm --position-embedding-type rope --swiglu
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 8 --rotary-base 1000000)
MOE_ARGS=(
    --num-experts 8
    --moe-router-topk 2
#   --moe-grouped-gemm
    --moe-token-dispatcher-type alltoall
    --overlap-param-gather --overlap-grad-reduce
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 256 --lr 1e-4 --bf16)
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --expert-model-parallel-size 8
    --use-distributed-optimizer --sequence-parallel)
LOGGING_ARGS=(--no-load-optim)
if [ -n "${WANDB_API_KEY}" ]; then
    LOGGING_ARGS+=(--wandb-project ${WANDB_PROJECT:-"Mixtral"})
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py ${MODEL_ARGS[@]} ${MOE_ARGS[@]} ${TRAINING_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]} ${LOGGING_ARGS[@]} --tokenizer-type Llama2Tokenizer
