// The rows of the key table, in the order of the plan file.
#include "plan/plan_key_fields.h"
#include "plan/plan_special_keys.h"
#include "plan/spec_yaml.h"

namespace reckon {

namespace plan_key {

namespace {

std::vector<NumberFormat> storage_formats() {
  std::vector<NumberFormat> formats = all_number_formats();
  std::erase(formats, NumberFormat::fp64);
  return formats;
}

void add_what(std::vector<PlanKey>& keys) {
  keys.push_back(reckon_version());
  keys.push_back(reference(
      "model", [](const Plan& plan) { return model_yaml(plan.model); },
      "The model: a name of configs/models, a path (YAML or a Hugging Face config.json), or its keys; "
      "`base: NAME` starts from another model."));
  keys.push_back(reference(
      "hardware", [](const Plan& plan) { return hardware_yaml(plan.hardware); },
      "The cluster: a name of configs/hardware, a path, `local` (this machine, calibrated), or its keys; "
      "`base: NAME` starts from another."));
  keys.push_back(field_or_auto(
      "nodes", [](auto& p) -> auto& { return p.nodes; }, kDegree, "nodes",
      "Nodes to use; auto = as many as the degrees need."));
  keys.push_back(method());
}

void add_batch(std::vector<PlanKey>& keys) {
  keys.push_back(sequence_length());
  keys.push_back(field(
      "batch.micro_batch", [](auto& p) -> auto& { return p.batch.micro_batch; }, {1, kMostRows}, "rows",
      "Rows of one forward pass on one replica."));
  keys.push_back(required(
      "batch.global_batch", [](auto& p) -> auto& { return p.batch.global_batch; }, {1, kMostRows}, "rows",
      "Rows of one optimizer step over all replicas: micro_batch x data x accumulation."));
}

void add_parallel(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "parallel.data", [](auto& p) -> auto& { return p.parallel.data; }, kDegree, "ranks",
      "Replicas of the model, each with its own rows."));
  keys.push_back(field(
      "parallel.pipeline", [](auto& p) -> auto& { return p.parallel.pipeline; }, kDegree, "ranks", "Pipeline stages."));
  keys.push_back(field(
      "parallel.tensor", [](auto& p) -> auto& { return p.parallel.tensor; }, kDegree, "ranks",
      "Tensor parallel degree: splits heads, FFN width and vocabulary."));
  keys.push_back(field(
      "parallel.sequence", [](auto& p) -> auto& { return p.parallel.sequence; },
      "Megatron sequence parallelism within the tensor group."));
  keys.push_back(field(
      "parallel.ulysses", [](auto& p) -> auto& { return p.parallel.ulysses; }, kDegree, "ranks",
      "Context parallelism by all-to-all over heads; HSAP's intra group."));
  keys.push_back(field(
      "parallel.ring", [](auto& p) -> auto& { return p.parallel.ring; }, kDegree, "ranks",
      "Context parallelism by passing key/value blocks; HSAP's inter group."));
  keys.push_back(field(
      "parallel.expert", [](auto& p) -> auto& { return p.parallel.expert; }, kDegree, "ranks",
      "Ranks of data x context that the routed experts are spread over."));
  keys.push_back(field(
      "parallel.expert_imbalance", [](auto& p) -> auto& { return p.parallel.expert_imbalance; }, {1, 1e6}, "ratio",
      "Tokens that the busiest expert rank receives over the mean; a rank never receives more than there are."));
  keys.push_back(field(
      "parallel.zero", [](auto& p) -> auto& { return p.parallel.zero; }, {0, 3}, "stage",
      "What is sharded over replicas: 0 nothing, 1 optimizer states, 2 also gradients, 3 also parameters."));
  keys.push_back(field_or_auto(
      "parallel.zero_group", [](auto& p) -> auto& { return p.parallel.zero_group; }, kDegree, "ranks",
      "Ranks a shard is spread over; auto = all of data x context, fewer = hybrid sharding."));
  keys.push_back(field(
      "parallel.schedule", [](auto& p) -> auto& { return p.parallel.schedule; }, "Pipeline schedule."));
  keys.push_back(field(
      "parallel.chunks", [](auto& p) -> auto& { return p.parallel.chunks; }, {1, 1024}, "virtual stages",
      "Virtual stages of a rank, for interleaved."));
  keys.push_back(list_or_auto(
      "parallel.layers_per_stage", [](auto& p) -> auto& { return p.parallel.layers_per_stage; }, {0, 100000}, "layers",
      "Layers of each virtual stage in model order; auto = as even as possible, no layer dropped."));
}

void add_documents(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "documents.source", [](auto& p) -> auto& { return p.documents.source; },
      "Where document lengths come from: single, a distribution (fineweb, wikipedia, code, mixed, ...), a .lengths "
      "file, a token file or a text folder."));
  keys.push_back(field(
      "documents.rows", [](auto& p) -> auto& { return p.documents.rows; },
      "packed: rows are filled with documents; padded: one document a row (the Batching baseline)."));
  keys.push_back(field(
      "documents.packer", [](auto& p) -> auto& { return p.documents.packer; },
      "concatenate: in order, cut at row ends; first_fit, best_fit: no cuts, some padding; balanced: no cuts, rows of "
      "nearly equal attention work."));
  keys.push_back(field(
      "documents.attention", [](auto& p) -> auto& { return p.documents.attention; },
      "per_document: no attention across documents; whole_row: one causal triangle (the Packing baseline)."));
  keys.push_back(field(
      "documents.placement", [](auto& p) -> auto& { return p.documents.placement; },
      "How the tokens of a row are dealt to the ring's ranks."));
}

void add_precision(std::vector<PlanKey>& keys) {
  using enum NumberFormat;
  keys.push_back(format_field(
      "precision.compute", [](auto& p) -> auto& { return p.precision.compute; },
      {bf16, fp16, fp32, fp64, fp8_e4m3, fp8_e5m2, mxfp4, nvfp4},
      "Format of matrix products; weights are held in it (in bf16 below 16 bits)."));
  keys.push_back(format_field(
      "precision.master", [](auto& p) -> auto& { return p.precision.master; }, {fp32, fp64, bf16, fp16},
      "Format of the weights that the optimizer updates."));
  keys.push_back(field(
      "kernels.attention", [](auto& p) -> auto& { return p.kernels.attention; },
      "flash: scores are never stored; unfused: the score matrix is kept."));
  keys.push_back(field(
      "kernels.loss", [](auto& p) -> auto& { return p.kernels.loss; },
      "fused: gradient in place of the logits; fp32_logits: an FP32 copy is kept; fp32_softmax: the FP32 copy and the "
      "FP32 softmax made from it exist side by side, the latter is kept; chunked: logits never whole."));
  keys.push_back(field(
      "kernels.activation", [](auto& p) -> auto& { return p.kernels.activation; },
      "Of a gated FFN. fused: one pass over gate and up; unfused: the activated gate is a tensor of its own and "
      "kept."));
  keys.push_back(field(
      "kernels.dropout", [](auto& p) -> auto& { return p.kernels.dropout; },
      "Dropout after the embedding, both branches of a layer and unfused scores: masks are kept, one byte an "
      "element."));
  keys.push_back(field(
      "kernels.pending_collectives", [](auto& p) -> auto& { return p.kernels.pending_collectives; }, {0, 100000},
      "tensors",
      "With sequence parallelism and no pipeline, whole [tokens, hidden] tensors that are not free yet because the "
      "host runs ahead of "
      "the collective that reads them."));
}

void add_activations(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "activations.method", [](auto& p) -> auto& { return p.activations.method; },
      "policy: the keys below decide; optimal: the budget solver decides per class and stage."));
  keys.push_back(field(
      "activations.error_weight", [](auto& p) -> auto& { return p.activations.error_weight; }, kNotNegative,
      "step times", "optimal: what a normalized gradient error of 1 is worth, in step times with everything kept."));
  keys.push_back(activation_errors());
  PlanKey stored = format_field(
      "activations.stored", [](auto& p) -> auto& { return p.activations.stored; }, storage_formats(),
      "Format in which tensors kept for backward are stored.");
  keys.push_back(stored);
  keys.push_back(activation_classes());
  keys.push_back(field(
      "activations.block", [](auto& p) -> auto& { return p.activations.block; }, {16, 2048}, "elements",
      "Elements that share one scale in block-scaled formats."));
  keys.push_back(field(
      "activations.scale", [](auto& p) -> auto& { return p.activations.scale; }, "Format of the block scales."));
  keys.push_back(field(
      "activations.rounding", [](auto& p) -> auto& { return p.activations.rounding; },
      "How kept tensors are rounded to a narrower format."));
  keys.push_back(list_or_auto(
      "activations.bits_by_stage", [](auto& p) -> auto& { return p.activations.bits_by_stage; }, {2, 16}, "bits",
      "Width of block-scaled kept tensors by pipeline stage; auto = more bits where fewer "
      "micro-batches are in flight (AGoQ's rule)."));
  keys.push_back(field(
      "activations.recompute", [](auto& p) -> auto& { return p.activations.recompute; },
      "What is dropped in forward and computed again in backward."));
  keys.push_back(list_or_auto(
      "activations.recompute_layers", [](auto& p) -> auto& { return p.activations.recompute_layers; }, {0, 100000},
      "layers", "Recomputed layers by stage, one number = every stage; auto = the fewest that fit."));
}

void add_states(std::vector<PlanKey>& keys) {
  using enum NumberFormat;
  keys.push_back(format_field(
      "gradients.stored", [](auto& p) -> auto& { return p.gradients.stored; },
      {fp32, bf16, fp16, fp64, fp8_e4m3, fp8_e5m2, int8}, "Format of accumulated gradients."));
  keys.push_back(format_field(
      "gradients.wire", [](auto& p) -> auto& { return p.gradients.wire; },
      {fp32, bf16, fp16, fp64, fp8_e4m3, fp8_e5m2, int8}, "Format in which gradients travel."));
  keys.push_back(field(
      "gradients.reduce", [](auto& p) -> auto& { return p.gradients.reduce; },
      "all_reduce, or all_to_all_sum: all-to-all, sum in FP32, then gather."));
  keys.push_back(field(
      "gradients.exchange", [](auto& p) -> auto& { return p.gradients.exchange; },
      "all_to_all_sum: flat, or hierarchical: inside each node first, then between nodes."));
  keys.push_back(field(
      "gradients.bucket", [](auto& p) -> auto& { return p.gradients.bucket; }, {1, 1e12}, "bytes",
      "Largest piece that one reduction carries."));
  keys.push_back(field(
      "gradients.rounding", [](auto& p) -> auto& { return p.gradients.rounding; },
      "How gradients are rounded to a block-scaled format, stored or on the wire."));
  keys.push_back(field(
      "gradients.plain_below", [](auto& p) -> auto& { return p.gradients.plain_below; }, {0, 1e12}, "bytes",
      "all_to_all_sum: a message smaller than this, counted in FP32, is summed in FP32 by a plain collective."));
  keys.push_back(field(
      "gradients.bucket_copies", [](auto& p) -> auto& { return p.gradients.bucket_copies; },
      "With several replicas, the buckets of the reduction hold a second copy of all gradients, in compute "
      "precision."));
  keys.push_back(field(
      "optimizer.kind", [](auto& p) -> auto& { return p.optimizer.kind; }, "Optimizer; sgd has no momentum."));
  keys.push_back(format_field(
      "optimizer.states", [](auto& p) -> auto& { return p.optimizer.states; }, {fp32, fp64, bf16, fp16, int8},
      "Format of the optimizer's moments; int8 is block-wise."));
  keys.push_back(field(
      "optimizer.learning_rate", [](auto& p) -> auto& { return p.optimizer.learning_rate; }, kNotNegative, "",
      "Learning rate after warm-up."));
  keys.push_back(field(
      "optimizer.minimum_learning_rate", [](auto& p) -> auto& { return p.optimizer.minimum_learning_rate; },
      kNotNegative, "", "Where a falling schedule ends."));
  keys.push_back(field(
      "optimizer.warmup_steps", [](auto& p) -> auto& { return p.optimizer.warmup_steps; }, {0, kMany}, "steps",
      "Steps over which the learning rate rises from 0."));
  keys.push_back(field(
      "optimizer.schedule", [](auto& p) -> auto& { return p.optimizer.schedule; },
      "How the learning rate falls after warm-up."));
  keys.push_back(field(
      "optimizer.beta1", [](auto& p) -> auto& { return p.optimizer.beta1; }, kShare, "",
      "Decay of AdamW's first moment."));
  keys.push_back(field(
      "optimizer.beta2", [](auto& p) -> auto& { return p.optimizer.beta2; }, kShare, "",
      "Decay of AdamW's second moment."));
  keys.push_back(field(
      "optimizer.epsilon", [](auto& p) -> auto& { return p.optimizer.epsilon; }, kNotNegative, "",
      "Added to the denominator of AdamW."));
  keys.push_back(field(
      "optimizer.weight_decay", [](auto& p) -> auto& { return p.optimizer.weight_decay; }, kNotNegative, "",
      "Decoupled weight decay."));
  keys.push_back(field(
      "optimizer.clip_gradient_norm", [](auto& p) -> auto& { return p.optimizer.clip_gradient_norm; }, kNotNegative, "",
      "Largest global gradient norm; 0 = no clipping."));
  keys.push_back(memory_limit());
  keys.push_back(field(
      "memory.workspace", [](auto& p) -> auto& { return p.memory.workspace; }, {0, 1e12}, "bytes",
      "Workspaces of libraries (cuBLAS, Transformer Engine) that lie in the allocator for the whole run."));
}

void add_train(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "train.steps", [](auto& p) -> auto& { return p.train.steps; }, {1, kMany}, "steps", "Optimizer steps of `run`."));
  keys.push_back(field(
      "train.seed", [](auto& p) -> auto& { return p.train.seed; }, kNotNegative, "",
      "Seed of weights and data order."));
  keys.push_back(field(
      "train.data", [](auto& p) -> auto& { return p.train.data; },
      "Text folder, JSONL file or token file; empty = pseudo-random tokens."));
  keys.push_back(field(
      "train.tokenizer", [](auto& p) -> auto& { return p.train.tokenizer; },
      "bytes, or the path of a SentencePiece model."));
  keys.push_back(field(
      "train.initial_weights", [](auto& p) -> auto& { return p.train.initial_weights; },
      "Weights to start from: a safetensors file with LLaMA's names, or a Hugging Face folder; empty = random."));
  keys.push_back(field(
      "train.checkpoint_every", [](auto& p) -> auto& { return p.train.checkpoint_every; }, {0, kMany}, "steps",
      "Steps between checkpoints; 0 = only when the run is interrupted."));
  keys.push_back(field(
      "train.keep_checkpoints", [](auto& p) -> auto& { return p.train.keep_checkpoints; }, {0, kMany}, "",
      "Newest checkpoints that are kept; 0 = all."));
  keys.push_back(field(
      "train.warmup", [](auto& p) -> auto& { return p.train.warmup; }, {0, kMany}, "steps",
      "First steps that are left out of timing medians."));
  keys.push_back(field(
      "train.timeout", [](auto& p) -> auto& { return p.train.timeout; }, {1e-3, 1e9}, "seconds",
      "A rank that is silent for longer ends the run."));
}

void add_sim(std::vector<PlanKey>& keys) {
  keys.push_back(field(
      "sim.seed", [](auto& p) -> auto& { return p.sim.seed; }, kNotNegative, "", "Seed of the jitter."));
  keys.push_back(field(
      "sim.jitter", [](auto& p) -> auto& { return p.sim.jitter; }, {0, 10}, "",
      "Coefficient of variation of op times."));
  keys.push_back(slow_ranks());
  keys.push_back(field(
      "sim.network_scale", [](auto& p) -> auto& { return p.sim.network_scale; }, {1e-6, 1e6}, "factor",
      "What if the network were this many times faster."));
  keys.push_back(field(
      "sim.compute_scale", [](auto& p) -> auto& { return p.sim.compute_scale; }, {1e-6, 1e6}, "factor",
      "What if the devices were this many times faster."));
  keys.push_back(field(
      "sim.free_overlap", [](auto& p) -> auto& { return p.sim.free_overlap; },
      "What if overlapped compute were not slowed down."));
  keys.push_back(field(
      "sim.free_communication", [](auto& p) -> auto& { return p.sim.free_communication; },
      "What if communication took no time."));
}

}  // namespace

}  // namespace plan_key

std::vector<PlanKey> make_plan_keys() {
  std::vector<PlanKey> keys;
  plan_key::add_what(keys);
  plan_key::add_batch(keys);
  plan_key::add_parallel(keys);
  plan_key::add_documents(keys);
  plan_key::add_precision(keys);
  plan_key::add_activations(keys);
  plan_key::add_states(keys);
  plan_key::add_train(keys);
  plan_key::add_sim(keys);
  return keys;
}

}  // namespace reckon
