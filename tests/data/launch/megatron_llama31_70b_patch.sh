TP=4
PP=4
CP=1
AC=sel
PR=bf16
NUM_LAYERS=80
gqa_options=" \
            --group-query-attention \
            --num-query-groups 8"
TP_COMM_OVERLAP=$(( ($TP > 1) ? 1 : 0 ))
if [ $TP_COMM_OVERLAP -eq 1 ]; then
    comm_overlap_option="--tp-comm-overlap --overlap-grad-reduce --overlap-param-gather"
fi
if [ $AC = full ]; then
    activation_checkpoint_options=" --recompute-method uniform --recompute-num-layers 1 --recompute-granularity full"
elif [ $AC = sel ]; then
    activation_checkpoint_options=" --recompute-activations"
fi
if [ $PR = bf16 ]; then pr_options=" --bf16"; fi
megatron_options=" --micro-batch-size 1 --global-batch-size 128 --num-layers ${NUM_LAYERS} --hidden-size 8192 \
    --num-attention-heads 64 --ffn-hidden-size 28672 --seq-length 8192 --max-position-embeddings 131072 \
    --max-padding-length 8192 --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} \
    --context-parallel-size ${CP} --extra-vocab-size 256 --patch-tokenizer-type LLama3Tokenizer --swiglu \
    --normalization RMSNorm --use-rotary-position-embeddings --position-embedding-type rope \
    --untie-embeddings-and-output-weights --disable-bias-linear --use-distributed-optimizer --sequence-parallel"
run_cmd="torchrun --nproc_per_node 8 --nnodes 4 pretrain_llama.py ${megatron_options} ${pr_options} ${gqa_options} \
 ${activation_checkpoint_options} ${comm_overlap_option}"
eval ${run_cmd}
