// The plan: everything that decides a training run, checked once and constant afterwards.
// Each field is one key of the plan file; configs/README.md lists them with unit, default and meaning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/activation_class.h"
#include "plan/hardware_spec.h"
#include "plan/model_spec.h"
#include "plan/number_format.h"
#include "plan/units.h"

namespace reckon {

enum class ScheduleKind { gpipe, one_forward_one_backward, interleaved };
enum class Recompute { none, elementwise, selective, full };
enum class Rows { packed, padded };
enum class Packer { concatenate, first_fit, best_fit, balanced };  // see pack_documents.h
enum class AttentionScope { per_document, whole_row };
enum class Placement { contiguous, zigzag, zigzag_per_document, striped, balanced, automatic };
enum class AttentionKernel { flash, unfused };
enum class ActivationKernel { fused, unfused };
enum class LossKernel { fused, fp32_logits, fp32_softmax, chunked };
enum class GradientReduce { all_reduce, all_to_all_sum };
enum class GradientExchange { flat, hierarchical };  // hierarchical: inside each node first, then between nodes
enum class OptimizerKind { adamw, sgd };
enum class LearningRateSchedule { constant, linear, cosine };
enum class ActivationMethod { policy, optimal };

struct BatchSpec {
  std::int64_t sequence_length = 0;  // tokens of one row
  std::int64_t micro_batch = 1;      // rows of one forward pass on one replica
  std::int64_t global_batch = 0;     // rows of one optimizer step, all replicas
};

struct ParallelSpec {
  std::int64_t data = 1, pipeline = 1, tensor = 1;
  bool sequence = false;  // Megatron sequence parallelism within the tensor group
  std::int64_t ulysses = 1, ring = 1, expert = 1;
  double expert_imbalance = 1.0;  // tokens of the busiest expert rank / mean
  int zero = 0;
  std::int64_t zero_group = 0;  // ranks a shard is spread over; 0 = auto: all of data x context
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t chunks = 1;                     // virtual stages of a rank
  std::vector<std::int64_t> layers_per_stage;  // by virtual stage, in model order; empty = auto
};

struct DocumentSpec {
  std::string source = "single";  // see LengthSource in document_lengths.h
  Rows rows = Rows::packed;
  Packer packer = Packer::balanced;  // of packed rows
  AttentionScope attention = AttentionScope::per_document;
  Placement placement = Placement::automatic;
};

struct PrecisionSpec {
  NumberFormat compute = NumberFormat::bf16;
  NumberFormat master = NumberFormat::fp32;
};

struct KernelSpec {
  AttentionKernel attention = AttentionKernel::flash;
  ActivationKernel activation = ActivationKernel::fused;
  LossKernel loss = LossKernel::fused;
  bool dropout = false;                  // masks are kept, and unfused scores twice
  std::int64_t pending_collectives = 0;  // whole tensors that wait for their collective, see communication_buffers
};

/// What happens to the kept tensors of one class: kept in `storage`, or dropped and recomputed.
struct ClassPolicy {
  bool recompute = false;
  NumberFormat format = NumberFormat::bf16;

  bool operator==(const ClassPolicy&) const = default;
};

struct ActivationSpec {
  ActivationMethod method = ActivationMethod::policy;
  double error_weight = 1.0;                 // optimal: step times that a normalized gradient error of 1 is worth
  std::map<ActivationClass, double> errors;  // optimal: gradient error of a class in fp4_e2m1; missing = published
  NumberFormat stored = NumberFormat::bf16;  // fp32 compute: "compute precision" (see resolve)
  std::map<ActivationClass, ClassPolicy> classes;                        // overrides `stored`
  std::map<ActivationClass, std::vector<ClassPolicy>> classes_by_stage;  // one policy a pipeline stage; over `classes`
  int block = 128;
  ScaleFormat scale = ScaleFormat::bf16;
  Rounding rounding = Rounding::nearest_even;
  std::vector<int> bits_by_stage;  // empty = auto (AGoQ's rule) where `stored` is below 16 bits
  Recompute recompute = Recompute::none;
  std::vector<std::int64_t> recompute_layers;  // by stage; one entry = all stages; empty = auto

  /// The same layer may be kept otherwise on another stage.
  bool differs_by_stage() const { return !bits_by_stage.empty() || !classes_by_stage.empty(); }
};

struct GradientSpec {
  NumberFormat stored = NumberFormat::fp32;
  NumberFormat wire = NumberFormat::fp32;
  GradientReduce reduce = GradientReduce::all_reduce;
  GradientExchange exchange = GradientExchange::flat;  // of all_to_all_sum
  Bytes bucket{40'000'000};                            // largest piece that one reduction carries
  Rounding rounding = Rounding::nearest_even;          // to block-scaled formats
  Bytes plain_below{65'536};   // 64 KiB; all_to_all_sum: smaller messages (in FP32) are summed in FP32 as they are
  bool bucket_copies = false;  // the buckets hold a second copy of all gradients, in compute precision
};

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adamw;
  NumberFormat states = NumberFormat::fp32;
  double learning_rate = 3e-4;
  double minimum_learning_rate = 0.0;
  std::int64_t warmup_steps = 0;
  LearningRateSchedule schedule = LearningRateSchedule::constant;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double clip_gradient_norm = 1.0;  // 0 = off
};

struct MemorySpec {
  std::optional<Bytes> limit;  // empty = auto: the device's memory minus context
  Bytes workspace;             // of libraries, held in the allocator for the whole run
};

struct TrainSpec {
  std::int64_t steps = 20;
  std::uint64_t seed = 1;
  std::string data;                 // text folder, JSONL file, token file; empty = pseudo-random tokens
  std::string tokenizer = "bytes";  // bytes, or the path of a SentencePiece model
  std::string initial_weights;      // safetensors file or folder of Hugging Face; empty = random by seed
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 2;  // newest ones; 0 = all
  std::int64_t warmup = 2;            // first steps that are left out of timing medians
  Seconds timeout{60.0};              // a rank silent for longer ends the run
};

struct SimSpec {
  std::uint64_t seed = 1;
  double jitter = 0.0;                        // coefficient of variation of op times
  std::map<std::int64_t, double> slow_ranks;  // rank -> factor on its compute time
  double network_scale = 1.0, compute_scale = 1.0;
  bool free_overlap = false;  // no slow-down of overlapped compute
  bool free_communication = false;
};

struct Plan {
  std::string source_file;  // where it was read, for messages
  std::string method;       // preset name, empty = none
  ModelSpec model;
  HardwareSpec hardware;
  std::int64_t nodes = 0;  // 0 = as many as the degrees need
  BatchSpec batch;
  ParallelSpec parallel;
  DocumentSpec documents;
  PrecisionSpec precision;
  KernelSpec kernels;
  ActivationSpec activations;
  GradientSpec gradients;
  OptimizerSpec optimizer;
  MemorySpec memory;
  TrainSpec train;
  SimSpec sim;

  /// Rows hold documents of their own; otherwise each is cut from one stream of tokens.
  bool has_documents() const { return documents.source != "single"; }
  std::int64_t context() const { return parallel.ulysses * parallel.ring; }
  std::int64_t world_size() const { return parallel.data * parallel.pipeline * parallel.tensor * context(); }
  std::int64_t virtual_stages() const { return parallel.pipeline * parallel.chunks; }
  /// Micro-batches of one replica in one step.
  std::int64_t micro_batches() const { return batch.global_batch / (batch.micro_batch * parallel.data); }
};

}  // namespace reckon
