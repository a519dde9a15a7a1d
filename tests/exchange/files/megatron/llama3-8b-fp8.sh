#!/bin/bash
TP_SIZE=1     # was 2 with sequence parallelism
CP_SIZE=1
MICRO_BATCH=1
GLOBAL_BATCH=128
LAYERS=32
DTYPE="fp8"
DISTRIBUTED="--nproc_per_node 8 --nnodes 1"
MODEL_ARGS=(
    --num-layers $LAYERS
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --rotary-base 1000000
    --rotary-percent 1.0
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --attention-backend fused   # or flash
)
TRAINING_ARGS=(
    --micro-batch-size $MICRO_BATCH
    --global-batch-size $GLOBAL_BATCH
    --lr 0.00015 --min-lr 0.00001 --decoupled-lr 5.0e-4
    --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --adam-beta2 0.95
    --bf16 --grad-reduce-in-bf16 --cross-entropy-loss-fusion
)
if [[ "$DTYPE" == "fp8" ]]; then
    TRAINING_ARGS+=("--fp8-format hybrid" "--fp8-amax-history-len 1024" "--fp8-param-gather")
fi
MP_ARGS=(
    --tensor-model-parallel-size $TP_SIZE
    --context-parallel-size $CP_SIZE
    --sequence-parallel  # needs TP 2
    --use-distributed-optimizer
)
torchrun $DISTRIBUTED pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAINING_ARGS[@]}" "${MP_ARGS[@]}" \
   --vocab-size 128256 --tokenizer-type NullTokenizer --mock-data
