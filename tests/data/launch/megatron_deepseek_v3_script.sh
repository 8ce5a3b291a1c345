MODEL_SIZE=${MODEL_SIZE:-671B}
TP=${TP:-1}
PP=${PP:-16}
EP="${EP:-32}"
NNODES=${NNODES:-64}
SP=true
AC="${AC:-full}"
if [ $MODEL_SIZE = 671B ]; then
    HIDDEN_SIZE=7168 # wider
    NUM_LAYERS=${NUM_LAYERS:-61}
    MOE_INTERMEDIATE_SIZE=2048
    NUM_EXPERTS=256
    moe_options=" \
        --q-lora-rank 1536 \
        --moe-router-num-groups 8 --moe-router-group-topk 4 --moe-router-enable-expert-bias"
elif [ $MODEL_SIZE = 16B ]; then
    HIDDEN_SIZE=2048
    NUM_LAYERS=27
    MOE_INTERMEDIATE_SIZE=1408
    NUM_EXPERTS=64
    moe_options=""
fi
moe_options=" \
    ${moe_options} --multi-latent-attention --qk-layernorm --attention-sink-k 0 --moe-ffn-hidden-size ${MOE_INTERMEDIATE_SIZE} \
    --enable-shared-expert --moe-layer-freq '([0]*3+[1]*58)' \
    --moe-shared-expert-intermediate-size  $((1 * ${MOE_INTERMEDIATE_SIZE})) --moe-router-topk 8 \
    --num-experts ${NUM_EXPERTS} --moe-token-dispatcher-type alltoall --moe-shared-expert-overlap \
    --expert-model-parallel-size ${EP} --expert-tensor-parallel-size 1 \
    --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --kv-channels 128 "
if [ $AC = full ]; then
    activation_checkpoint_options=" --recompute-method block --recompute-granularity full --recompute-num-layers 2"
elif [ $AC = none ]; then
    activation_checkpoint_options=" "
fi
if [ $SP = true ] && [ $TP -gt 1 ]; then
    sp_options=" --sequence-parallel"
fi
megatron_options="  \
        --micro-batch-size 1 --global-batch-size 4096 --num-layers ${NUM_LAYERS} --hidden-size ${HIDDEN_SIZE} \
        --num-attention-heads 128 --ffn-hidden-size 18432 --seq-length 4096 --max-position-embeddings 4096 \
        --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} --tokenizer-type DeepSeekV3Tokenizer \
        --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights \
        --disable-bias-linear --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --bf16 "
run_cmd="torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_deepseek.py
 ${megatron_options} ${moe_options} ${activation_checkpoint_options} ${sp_options}"
echo ${run_cmd}
eval ${run_cmd}
