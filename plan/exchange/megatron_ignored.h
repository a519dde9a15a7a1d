// Arguments of Megatron-LM that change neither the memory nor the time of a step, by reason.
#pragma once

#include <string_view>

namespace reckon {

struct IgnoredArguments {
  std::string_view why;
  std::string_view names;  // separated by blanks
};

inline constexpr IgnoredArguments kIgnoredByMegatronReader[] = {
    {"no change of shapes or formats",
     "--use-mcore-models --use-legacy-models --no-create-attention-mask-in-dataloader --no-mmap-bin-files "
     "--init-method-std --init-method-xavier-uniform --attention-softmax-in-fp32 --apply-layernorm-1p "
     "--no-masked-softmax-fusion --no-bias-gelu-fusion --bias-swiglu-fusion --no-bias-dropout-fusion "
     "--no-rope-fusion --no-position-embedding --no-gradient-accumulation-fusion --use-cpu-initialization "
     "--no-persist-layer-norm --rotary-seq-len-interpolation-factor --deterministic-mode "
     "--no-async-tensor-model-parallel-allreduce --clone-scatter-output-in-embedding "
     "--rotary-scaling-factor --mscale --mscale-all-dim --no-query-key-layer-scaling "
     "--apply-query-key-layer-scaling --enable-experimental --te-rng-tracker --cuda-graph-scope "
     "--manual-gc --manual-gc-interval --empty-unused-memory-level --enable-cuda-graph "
     "--abort-on-unmet-fused-kernel-constraints"},
    {"what can overlap is overlapped by the model of time",
     "--overlap-grad-reduce --overlap-param-gather --tp-comm-overlap --overlap-p2p-communication "
     "--no-overlap-p2p-communication --overlap-param-gather-with-optimizer-step --delay-grad-reduce "
     "--overlap-moe-expert-parallel-comm --align-param-gather --tp-comm-bootstrap-backend "
     "--moe-shared-expert-overlap --delay-wgrad-compute"},
    {"routing that changes no number of experts a token visits",
     "--moe-token-dispatcher-type --moe-grouped-gemm --moe-permute-fusion --moe-router-dtype "
     "--moe-router-load-balancing-type --moe-aux-loss-coeff --moe-router-score-function --moe-z-loss-coeff "
     "--moe-router-topk-scaling-factor --moe-router-num-groups --moe-router-group-topk --moe-router-fusion "
     "--moe-router-pre-softmax --moe-router-bias-update-rate --moe-pad-expert-input-to-capacity "
     "--moe-enable-deepep --moe-token-drop-policy --moe-use-legacy-grouped-gemm --moe-per-layer-logging "
     "--moe-router-force-load-balancing"},
    {"how numbers are scaled",
     "--fp8-margin --fp8-amax-history-len --fp8-amax-compute-algo --fp8-recipe --fp8-interval --no-fp8-wgrad "
     "--first-last-layers-bf16 --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 --loss-scale "
     "--initial-loss-scale --min-loss-scale --loss-scale-window --hysteresis"},
    {"length and rate of the training, not of a step",
     "--lr-warmup-fraction --lr-decay-iters --lr-warmup-samples --lr-decay-samples --train-samples "
     "--start-weight-decay --end-weight-decay --weight-decay-incr-style --lr-warmup-init --lr-wsd-decay-style "
     "--lr-wsd-decay-iters --exit-interval --exit-duration-in-mins --override-opt-param-scheduler "
     "--exit-signal-handler --decoupled-lr --decoupled-min-lr"},
    {"data",
     "--data-path --vocab-file --merge-file --tokenizer-model --split --data-cache-path --mock-data "
     "--num-workers --dataloader-type --train-data-path --valid-data-path --test-data-path "
     "--reset-position-ids --reset-attention-mask --eod-mask-loss --data-impl "
     "--num-dataset-builder-threads --tokenizer-hf-include-special-tokens --tiktoken-pattern "
     "--legacy-tokenizer --no-data-sharding"},
    {"checkpoints",
     "--save --load --save-interval --ckpt-format --ckpt-step --use-dist-ckpt --auto-detect-ckpt-format "
     "--use-checkpoint-args --no-load-optim --no-load-rng --no-save-optim --no-save-rng --finetune "
     "--ckpt-fully-parallel-save --ckpt-fully-parallel-load --ckpt-assume-constant-structure --async-save "
     "--dist-ckpt-format --dist-ckpt-strictness --pretrained-checkpoint --use-persistent-ckpt-worker"},
    {"logging, profiling and evaluation",
     "--log-interval --eval-interval --eval-iters --tensorboard-dir --log-throughput --wandb-project "
     "--wandb-exp-name --wandb-save-dir --wandb-entity --log-params-norm --log-num-zeros-in-grad "
     "--log-timers-to-tensorboard --log-memory-to-tensorboard --log-validation-ppl-to-tensorboard "
     "--timing-log-level --timing-log-option --log-progress --tensorboard-log-interval "
     "--tensorboard-queue-size --log-batch-size-to-tensorboard --profile --profile-step-start "
     "--profile-step-end --profile-ranks --use-pytorch-profiler --record-memory-history "
     "--memory-snapshot-path --check-for-nan-in-loss-and-grad --no-check-for-nan-in-loss-and-grad "
     "--log-loss-scale-to-tensorboard --one-logger-project --enable-one-logger --logging-level "
     "--no-one-logger --log-world-size-to-tensorboard"},
    {"how processes talk",
     "--jobid --ntasks --job-name --partition --distributed-backend --distributed-timeout-minutes --local-rank "
     "--use-ring-exchange-p2p "
     "--use-tp-pp-dp-mapping --nccl-communicator-config-path --nccl-ub --ddp-average-in-collective "
     "--ddp-num-buckets --ddp-bucket-size --lazy-mpu-init --no-gradient-reduce-div-fusion "
     "--ddp-pad-buckets-for-high-nccl-busbw --use-gloo-process-groups --disable-gloo-process-groups "
     "--high-priority-stream-groups --microbatch-group-size-per-virtual-pipeline-stage"},
};

}  // namespace reckon
