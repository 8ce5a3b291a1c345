NUM_NODES=16
DISTRIBUTED_ARGS=(--nproc_per_node 8 --nnodes $NUM_NODES)
GPT_MODEL_ARGS=(--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048
    --attention-backend auto)   # flash, fused, unfused or local
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 --fp16 --lr 6.0e-5)
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16)
DATA_ARGS=(--data-path $5 --vocab-file $3 --merge-file $4 --split 949,50,1)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${MODEL_PARALLEL_ARGS[@]} ${DATA_ARGS[@]}
