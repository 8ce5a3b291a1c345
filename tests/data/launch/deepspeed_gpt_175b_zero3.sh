TP=1
HIDDEN=12288
MICRO_BATCH=1
NODES=8
GPN=8
GLOBAL_BATCH=$(( ${GPN} * ${MICRO_BATCH} * ${NODES} ))
#OFFLOAD_DEVICE="cpu"
CPU_OPTIM=" "
ZERO_STAGE=3
cat <<EOT > $DS_CONFIG
{
  "train_batch_size" : $GLOBAL_BATCH,
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true
  }
}
EOT
ds_args=" "
ds_args=" --deepspeed ${ds_args}"
ds_args=" --no-pipeline-parallel ${ds_args}"
ds_args=" --zero-stage=$ZERO_STAGE ${ds_args}"
deepspeed --force_multi --num_nodes=$NODES --hostfile $HF pretrain_gpt.py \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 1 --num-layers 96 --hidden-size $HIDDEN \
    --num-attention-heads 96 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size $MICRO_BATCH \
    --global-batch-size $GLOBAL_BATCH --vocab-file gpt2-vocab.json --fp16 --checkpoint-activations \
    $CPU_OPTIM $ds_args --exit-interval 5000 | tee out.log
