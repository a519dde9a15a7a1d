GPUS=16
OPTIONS=(--nnodes 2 --nproc_per_node $((GPUS / 2))
  --num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --seq-length 4096
  --max-position-embeddings 163840 --position-embedding-type rope --multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128
  --qk-pos-emb-head-dim 64 --v-head-dim 128 --qk-layernorm --swiglu --normalization RMSNorm --disable-bias-linear
  --untie-embeddings-and-output-weights --attention-dropout 0.0 --hidden-dropout 0.0
  --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 --moe-shared-expert-intermediate-size 2816
  --moe-layer-freq "([0]*1+[1]*26)" --mtp-num-layers 1
  --vocab-size 102400 --make-vocab-size-divisible-by 1 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1
  --decoder-first-pipeline-num-layers 13 --pipeline-model-parallel-size 2
  --micro-batch-size 1 --global-batch-size 512 --bf16 --use-distributed-optimizer --recompute-activations)
torchrun pretrain_gpt.py "${OPTIONS[@]}"
