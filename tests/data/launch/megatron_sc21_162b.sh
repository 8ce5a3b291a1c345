PP=8
TP=$((64/PP))
MBS=1
NLS=32
HS=20480
NNODES=8
MEGATRON_EXTRA_PARAMS="--activations-checkpoint-method uniform "
export MEGATRON_PARAMS=" ${MEGATRON_EXTRA_PARAMS} \
  --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} --micro-batch-size ${MBS} \
  --global-batch-size 128 --num-layers ${NLS} --hidden-size ${HS} --num-attention-heads 128 --DDP-impl local \
  --vocab-file gpt2-vocab.json --seq-length 2048 --max-position-embeddings 2048 --fp16 --loss-scale 8192 "
