SEQ_LEN=2048
# HIDDEN_SIZE=768
HIDDEN_SIZE=2048
GLOBAL_BATCH_SIZE=512
TRAIN_TOKENS=300000000000
TRAIN_ITERS=$(( ${TRAIN_TOKENS} * 3 / ${GLOBAL_BATCH_SIZE} / ${SEQ_LEN} ))
NUM_GPUS=64
EP_SIZE=128
if [[ $EP_SIZE -gt $NUM_GPUS ]]; then
    EP_PARALLEL_SIZE=$NUM_GPUS
else
    EP_PARALLEL_SIZE=$EP_SIZE
fi
MOE_DROP_TOKEN="true"
megatron_options=" \
        --tensor-model-parallel-size 1 --moe-expert-parallel-size ${EP_PARALLEL_SIZE} --num-experts ${EP_SIZE} \
        --moe-loss-coeff 0.01 --moe-train-capacity-factor 1.0 --moe-min-capacity 4 --micro-batch-size 8 \
        --global-batch-size ${GLOBAL_BATCH_SIZE} --num-layers 24 --hidden-size ${HIDDEN_SIZE} --num-attention-heads 16 \
        --seq-length ${SEQ_LEN} --max-position-embeddings ${SEQ_LEN} --train-iters ${TRAIN_ITERS} --fp16 --checkpoint-activations"
if [[ $EP_SIZE -gt 1 ]]; then
megatron_options="${megatron_options} \
        --create-moe-param-group"
fi
if [ "${MOE_DROP_TOKEN}" = "false" ]; then
megatron_options="${megatron_options} --disable-moe-token-dropping"
fi
deepspeed_options=" --deepspeed --deepspeed_config ds.json --pipeline-model-parallel-size 1 --no-pipeline-parallel"
run_cmd="deepspeed pretrain_gpt.py ${megatron_options} --vocab-file gpt2-vocab.json ${deepspeed_options} &> log"
echo ${run_cmd}
eval ${run_cmd}
