#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-1}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
CHECKPOINT_PATH=$1 #<path>
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288 # width
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto
)
TRAINING_ARGS="
    --micro-batch-size 1 \
    --global-batch-size 1536 --global-batch-size-schedule "0:16 2.4B:320 4.7B:640 14B:1536"
    --fp16 --lr 6.0e-5 --lr-decay-style cosine --min-lr 6.0e-6 --clip-grad 1.0 --weight-decay 0.1
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16
    --tokenizer-type GPT2BPETokenizer
"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} $TRAINING_ARGS --save "$CHECKPOINT_PATH" --log-interval 100 2>&1 | tee log
