#!/bin/bash
# A model of eight billion weights on four nodes.
NODES=4
MODEL=(
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
  --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192
  --position-embedding-type rope --rotary-base 500000 --swiglu --normalization RMSNorm
  --disable-bias-linear --untie-embeddings-and-output-weights --vocab-size 128256
)
TRAINING="--micro-batch-size 1 --global-batch-size 128 --bf16 --attention-dropout 0 --hidden-dropout 0
  --use-distributed-optimizer --lr 3e-4 --my-own-option 7"
torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py ${MODEL[@]} $TRAINING \
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel
