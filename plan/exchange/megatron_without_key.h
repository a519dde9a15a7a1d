// Arguments of Megatron-LM that no key of a plan stands for: those that change neither the memory nor the time of a
// step, by reason, and those that do, by what the plan takes instead.
#pragma once

#include <string_view>

namespace reckon {

struct ArgumentsWithoutKey {
  std::string_view why;
  std::string_view names;  // separated by blanks
};

inline constexpr ArgumentsWithoutKey kIgnoredByMegatronReader[] = {
    {"no change of shapes or formats",
     "--use-mcore-models --use-legacy-models --no-create-attention-mask-in-dataloader --no-mmap-bin-files "
     "--init-method-std --init-method-xavier-uniform --apply-layernorm-1p --bias-swiglu-fusion "
     "--use-cpu-initialization --rotary-seq-len-interpolation-factor --rotary-scaling-factor --mscale "
     "--mscale-all-dim --no-query-key-layer-scaling --apply-query-key-layer-scaling --enable-experimental "
     "--te-rng-tracker --abort-on-unmet-fused-kernel-constraints"},
    {"routing that changes no number of experts a token visits",
     "--moe-router-dtype --moe-router-load-balancing-type --moe-aux-loss-coeff "
     "--moe-router-score-function --moe-z-loss-coeff --moe-router-topk-scaling-factor "
     "--moe-router-pre-softmax --moe-router-bias-update-rate --moe-token-drop-policy "
     "--moe-per-layer-logging"},
    {"how numbers are scaled",
     "--fp8-margin --fp8-amax-history-len --fp8-amax-compute-algo --fp8-interval --loss-scale "
     "--initial-loss-scale --min-loss-scale --loss-scale-window --hysteresis"},
    {"length and rate of the training, not of a step",
     "--lr-warmup-fraction --lr-decay-iters --lr-warmup-samples --lr-decay-samples --train-samples "
     "--start-weight-decay --end-weight-decay --weight-decay-incr-style --lr-warmup-init "
     "--lr-wsd-decay-style --lr-wsd-decay-iters --exit-interval --exit-duration-in-mins "
     "--override-opt-param-scheduler --exit-signal-handler --decoupled-lr --decoupled-min-lr"},
    {"data",
     "--data-path --vocab-file --merge-file --tokenizer-model --split --data-cache-path --mock-data "
     "--num-workers --dataloader-type --train-data-path --valid-data-path --test-data-path "
     "--reset-position-ids --eod-mask-loss --data-impl --num-dataset-builder-threads "
     "--tokenizer-hf-include-special-tokens --tiktoken-pattern --legacy-tokenizer --no-data-sharding"},
    {"checkpoints",
     "--save --load --save-interval --ckpt-format --ckpt-step --use-dist-ckpt --auto-detect-ckpt-format "
     "--use-checkpoint-args --no-load-optim --no-load-rng --no-save-optim --no-save-rng --finetune "
     "--ckpt-fully-parallel-save --ckpt-fully-parallel-load --ckpt-assume-constant-structure --async-save "
     "--use-persistent-ckpt-worker --dist-ckpt-format --dist-ckpt-strictness --pretrained-checkpoint"},
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
     "--jobid --ntasks --job-name --partition --distributed-backend --distributed-timeout-minutes "
     "--local-rank --ddp-average-in-collective --lazy-mpu-init --no-gradient-reduce-div-fusion "
     "--use-gloo-process-groups --disable-gloo-process-groups"},
};

inline constexpr ArgumentsWithoutKey kNotModelledOfMegatron[] = {
    {"the plan hides the reduction behind the last backward, as far as it fits", "--overlap-grad-reduce"},
    {"the plan hides ZeRO-3's gathers behind compute and waits for those after ZeRO-1's update",
     "--overlap-param-gather --overlap-param-gather-with-optimizer-step"},
    {"collectives of tensor parallelism beside products; in the plan only those of backward are hidden",
     "--tp-comm-overlap --tp-comm-bootstrap-backend --tp-comm-overlap-cfg --no-async-tensor-model-parallel-allreduce "
     "--tp-comm-overlap-rs-dgrad --tp-comm-bulk-dgrad --tp-comm-bulk-wgrad --tp-comm-overlap-ag --tp-comm-overlap-rs"},
    {"whether stages wait for their messages; in the plan they compute meanwhile",
     "--overlap-p2p-communication --no-overlap-p2p-communication --use-ring-exchange-p2p"},
    {"exchange and shared experts beside other work; the plan runs them one after the other",
     "--overlap-moe-expert-parallel-comm --moe-shared-expert-overlap"},
    {"when weight gradients are computed or buckets are sent; the plan does both in the order of backward",
     "--delay-wgrad-compute --delay-grad-reduce --align-param-gather "
     "--microbatch-group-size-per-virtual-pipeline-stage"},
    {"how groups lie on nodes and what NCCL holds for them",
     "--use-tp-pp-dp-mapping --nccl-communicator-config-path --nccl-ub --ddp-num-buckets "
     "--ddp-pad-buckets-for-high-nccl-busbw --high-priority-stream-groups"},
    {"which kernels run; the plan counts fused ones",
     "--attention-softmax-in-fp32 --no-masked-softmax-fusion --no-bias-gelu-fusion --no-bias-dropout-fusion "
     "--no-rope-fusion --no-gradient-accumulation-fusion --no-persist-layer-norm --deterministic-mode "
     "--enable-cuda-graph --cuda-graph-scope"},
    {"when Python and the allocator give memory back", "--manual-gc --manual-gc-interval --empty-unused-memory-level"},
    {"a copy of the embedding's output, kept or not", "--clone-scatter-output-in-embedding"},
    {"how tokens travel to experts and which kernels compute these; the plan has one all-to-all and grouped products",
     "--moe-token-dispatcher-type --moe-grouped-gemm --moe-permute-fusion --moe-router-fusion "
     "--moe-pad-expert-input-to-capacity --moe-enable-deepep --moe-use-legacy-grouped-gemm"},
    {"which experts are visited; parallel.expert_imbalance says how unevenly",
     "--moe-router-num-groups --moe-router-group-topk --moe-router-force-load-balancing"},
    {"which products run in 8 bits and how they are scaled; in the plan all of the layers do",
     "--fp8-recipe --no-fp8-wgrad --first-last-layers-bf16 --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16"},
    {"which tokens attend to which; documents.attention says it in the plan", "--reset-attention-mask"},
};

}  // namespace reckon
