// The rules between the values of a plan. Every broken rule is listed, in the user's own key names, with the equation
// in numbers and the nearest legal values. Sizes are limited so that all later 64-bit arithmetic is safe.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/check_model.h"
#include "plan/choices.h"
#include "plan/load_plan.h"
#include "plan/nearest_legal.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

class PlanChecker {
 public:
  explicit PlanChecker(const Plan& plan) : plan_(plan), parallel_(plan.parallel), model_(plan.model) {}

  std::vector<Diagnostic> check() {
    check_values();
    check_hardware();
    if (!broken_.empty()) return std::move(broken_);  // the rules below divide by these numbers
    check_sizes();
    if (!broken_.empty()) return std::move(broken_);
    check_world();
    check_batch();
    check_stages();
    check_schedule();
    check_tensor();
    check_context();
    check_experts();
    check_zero();
    check_positions();
    check_precision();
    check_activations();
    check_gradients();
    check_training();
    return std::move(broken_);
  }

 private:
  void broken(std::string key, std::string message) {
    broken_.push_back({std::move(message), plan_.source_file, 0, 0, std::move(key)});
  }

  /// Types and ranges of single keys: those of the schema, for plans that were not read from a file.
  void check_values() {
    for (const PlanKey& key : plan_keys()) {
      if (key.set == nullptr) continue;
      try {
        Plan scratch;
        key.set(key.get(plan_), scratch);
      } catch (const ConfigError& error) {
        broken(key.path, fmt::format("{}: {}", key.path, error.diagnostics().front().message));
      }
    }
    for (Diagnostic diagnostic : check_model(model_)) {
      diagnostic.key = "model." + diagnostic.key;
      if (diagnostic.file.empty()) diagnostic.file = plan_.source_file;
      broken_.push_back(std::move(diagnostic));
    }
  }

  void check_hardware() {
    const HardwareSpec& hardware = plan_.hardware;
    if (hardware.devices_per_node < 1)
      broken("hardware.devices_per_node", "hardware.devices_per_node must be 1 or more");
    if (hardware.device.memory.value <= 0) broken("hardware.device.memory", "hardware.device.memory must be above 0 B");
    if (!(hardware.device.memory_bandwidth.value > 0)) {
      broken("hardware.device.memory_bandwidth", "hardware.device.memory_bandwidth must be above 0");
    }
  }

  /// Upper bounds of what later code counts in 64 bits, in floating point so that they cannot overflow themselves.
  void check_sizes() {
    constexpr double kMostRanks = 1 << 24, kMostTokens = 1e15, kMostActions = 1 << 24, kMostBytes = 1e18;
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const double world = number(parallel_.data) * number(parallel_.pipeline) * number(parallel_.tensor) *
                         number(parallel_.ulysses) * number(parallel_.ring);
    if (world > kMostRanks) {
      return broken(
          "parallel",
          fmt::format("data x pipeline x tensor x ulysses x ring = {:.0f} ranks; at most {:.0f} can be planned", world,
                      kMostRanks));
    }
    const double tokens = number(plan_.batch.global_batch) * number(plan_.batch.sequence_length);
    if (tokens > kMostTokens) {
      broken("batch.global_batch",
             fmt::format("global_batch x sequence_length = {:.3g} tokens a step; at most {:.0g} can be planned", tokens,
                         kMostTokens));
    }
    const double micro_batches =
        number(plan_.batch.global_batch) / (number(plan_.batch.micro_batch) * number(parallel_.data));
    const double actions = micro_batches * number(parallel_.pipeline) * number(parallel_.chunks);
    if (actions > kMostActions) {
      broken("batch.micro_batch", fmt::format("{:.0f} micro-batches x {} virtual stages = {:.3g} pipeline actions; at "
                                              "most {:.0f} can be planned; raise "
                                              "micro_batch or data",
                                              micro_batches, plan_.virtual_stages(), actions, kMostActions));
    }
    const double widest =
        number(std::max({model_.hidden, model_.ffn_hidden, model_.moe.expert_ffn_hidden * model_.moe.experts_per_token,
                         model_.heads * std::max(model_.head_dim, model_.mla.qk_nope_head_dim)}));
    const double row_tokens = number(plan_.batch.micro_batch) * number(plan_.batch.sequence_length);
    double bytes = row_tokens * (widest * 64 * number(model_.layers) + 16 * number(model_.vocabulary)) *
                   std::max(1.0, micro_batches);
    if (plan_.kernels.attention == AttentionKernel::unfused) {
      bytes += 8 * row_tokens * number(plan_.batch.sequence_length) * number(model_.heads) * number(model_.layers) *
               std::max(1.0, micro_batches);
    }
    if (bytes > kMostBytes) {
      broken(
          "batch.sequence_length",
          fmt::format("the activations of one step come to about {:.2g} bytes a replica; at most {:.0g} can be planned",
                      bytes, kMostBytes));
    }
  }

  void check_world() {
    const HardwareSpec& hardware = plan_.hardware;
    if (plan_.nodes == 0 || hardware.device.is_cpu) return;  // ranks of a CPU machine share its cores
    const std::int64_t devices = plan_.nodes * hardware.devices_per_node, world = plan_.world_size();
    if (devices == world) return;
    std::string legal;
    const std::int64_t others = world / parallel_.data;
    if (devices % others == 0) legal = fmt::format("; legal: data {}", devices / others);
    if (world % hardware.devices_per_node == 0) {
      legal += fmt::format("{} nodes {}", legal.empty() ? "; legal:" : ", or", world / hardware.devices_per_node);
    } else {
      legal += legal.empty() ? "; legal: nodes auto, which leaves devices idle"
                             : ", or nodes auto, which leaves devices idle";
    }
    broken("nodes", fmt::format("data x pipeline x tensor x ulysses x ring = {} x {} x {} x {} x {} = {} ranks, but "
                                "nodes x devices_per_node = "
                                "{} x {} = {} devices{}",
                                parallel_.data, parallel_.pipeline, parallel_.tensor, parallel_.ulysses, parallel_.ring,
                                world, plan_.nodes, hardware.devices_per_node, devices, legal));
  }

  void check_batch() {
    const BatchSpec& batch = plan_.batch;
    const std::int64_t rows = batch.micro_batch * parallel_.data;
    if (batch.global_batch % rows == 0) return;
    broken("batch.global_batch", fmt::format("global_batch = micro_batch x data x accumulation, but {} is not a "
                                             "multiple of {} x {} = {}; nearest legal global_batch: {}",
                                             batch.global_batch, batch.micro_batch, parallel_.data, rows,
                                             either(nearest_multiples(rows, batch.global_batch))));
  }

  void check_stages() {
    const std::int64_t stages = plan_.virtual_stages();
    const std::vector<std::int64_t>& layers = parallel_.layers_per_stage;
    if (layers.empty()) {
      if (stages > model_.layers) {
        broken("parallel.pipeline",
               fmt::format(
                   "pipeline x chunks = {} x {} = {} virtual stages, but the model has {} layers; legal: at most {}",
                   parallel_.pipeline, parallel_.chunks, stages, model_.layers, model_.layers));
      }
      return;
    }
    if (static_cast<std::int64_t>(layers.size()) != stages) {
      return broken("parallel.layers_per_stage",
                    fmt::format("layers_per_stage has {} entries, but pipeline x chunks = {} x {} = {} virtual stages; "
                                "legal: {} entries, or auto",
                                layers.size(), parallel_.pipeline, parallel_.chunks, stages, stages));
    }
    const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    if (sum != model_.layers) {
      broken("parallel.layers_per_stage",
             fmt::format("layers_per_stage adds up to {} = {}, but the model has {} layers: {} layers {}; legal: "
                         "entries that add up to {}, or auto",
                         fmt::join(layers, " + "), sum, model_.layers, std::abs(model_.layers - sum),
                         sum < model_.layers ? "are missing" : "too many", model_.layers));
    }
    for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
      if (layers[i] == 0) {
        broken(
            "parallel.layers_per_stage",
            fmt::format("virtual stage {} of layers_per_stage has no layers; only the first and the last, which hold "
                        "embedding and head, may have none; legal: 1 or more",
                        i));
      }
    }
  }

  void check_schedule() {
    if (parallel_.schedule != ScheduleKind::interleaved) {
      if (parallel_.chunks > 1) {
        broken("parallel.chunks", fmt::format("chunks is {}, but only schedule interleaved has virtual stages; legal: "
                                              "chunks 1, or schedule interleaved",
                                              parallel_.chunks));
      }
      return;
    }
    if (parallel_.pipeline == 1) return;  // a warning: nothing to interleave
    if (parallel_.chunks == 1) {
      broken("parallel.chunks",
             "schedule interleaved needs chunks of 2 or more virtual stages a rank, found 1; legal: chunks 2, or "
             "schedule 1f1b");
    }
    const std::int64_t rows = plan_.batch.micro_batch * parallel_.data;
    if (plan_.batch.global_batch % rows == 0 && plan_.micro_batches() % parallel_.pipeline != 0) {
      broken("batch.global_batch",
             fmt::format("schedule interleaved needs a multiple of pipeline = {} micro-batches, but global_batch / "
                         "(micro_batch x data) = {} / ({} x {}) "
                         "= {}; nearest legal global_batch: {}",
                         parallel_.pipeline, plan_.batch.global_batch, plan_.batch.micro_batch, parallel_.data,
                         plan_.micro_batches(),
                         either(nearest_multiples(rows * parallel_.pipeline, plan_.batch.global_batch))));
    }
  }

  /// `what` (of the model) must be a multiple of tensor.
  void divided_by_tensor(std::string_view what, std::int64_t number) {
    if (number == 0 || number % parallel_.tensor == 0) return;
    broken("parallel.tensor",
           fmt::format("the model's {} is not divisible by tensor: {} / {}; nearest legal tensor: {}", what, number,
                       parallel_.tensor, either(nearest_divisors(legal_tensor_base(), parallel_.tensor))));
  }

  /// Every legal tensor degree divides it.
  std::int64_t legal_tensor_base() const {
    std::int64_t base = model_.heads;
    for (const std::int64_t width : {dense_width(), model_.moe.expert_ffn_hidden, model_.moe.shared_ffn_hidden})
      base = std::gcd(base, width);
    return base;
  }

  /// FFN width of dense layers; 0 where every layer is MoE.
  std::int64_t dense_width() const {
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      if (!model_.layer_is_moe(layer)) return model_.ffn_hidden;
    }
    return 0;
  }

  void check_tensor() {
    if (parallel_.tensor == 1) return;
    divided_by_tensor("heads", model_.heads);
    divided_by_tensor("ffn_hidden", dense_width());
    if (model_.is_moe()) {
      divided_by_tensor("moe.expert_ffn_hidden", model_.moe.expert_ffn_hidden);
      divided_by_tensor("moe.shared_ffn_hidden", model_.moe.shared_ffn_hidden);
    }
    const std::int64_t tokens = plan_.batch.sequence_length / plan_.context();
    if (parallel_.sequence && plan_.batch.sequence_length % plan_.context() == 0 && tokens % parallel_.tensor != 0) {
      broken("batch.sequence_length",
             fmt::format("sequence parallelism splits a row's sequence_length / (ulysses x ring) = {} / ({} x {}) = {} "
                         "tokens over tensor = {} ranks, "
                         "which does not come out even; nearest legal sequence_length: {}",
                         plan_.batch.sequence_length, parallel_.ulysses, parallel_.ring, tokens, parallel_.tensor,
                         either(nearest_multiples(parallel_.tensor * plan_.context(), plan_.batch.sequence_length))));
    }
  }

  void check_context() {
    const std::int64_t split = parallel_.tensor * parallel_.ulysses;
    if (model_.heads % parallel_.tensor == 0 && model_.heads % split != 0) {
      broken("parallel.ulysses",
             fmt::format("ulysses deals the heads / tensor = {} / {} = {} heads of a rank to {} ranks, which does not "
                         "come out even; nearest legal ulysses: {}",
                         model_.heads, parallel_.tensor, model_.heads / parallel_.tensor, parallel_.ulysses,
                         either(nearest_divisors(model_.heads / parallel_.tensor, parallel_.ulysses))));
    }
    if (!model_.is_mla() && model_.kv_heads % split != 0 && split % model_.kv_heads != 0) {
      broken(parallel_.ulysses > 1 ? "parallel.ulysses" : "parallel.tensor",
             fmt::format("the model's {} kv_heads and tensor x ulysses = {} x {} = {}: one must be a multiple of the "
                         "other (key/value heads are split "
                         "or replicated whole); nearest legal product: {}",
                         model_.kv_heads, parallel_.tensor, parallel_.ulysses, split, either(legal_kv_splits(split))));
    }
    const bool zigzag =
        plan_.documents.placement == Placement::zigzag || plan_.documents.placement == Placement::zigzag_per_document;
    const std::int64_t pieces = plan_.context() * (zigzag && parallel_.ring > 1 ? 2 : 1);
    if (plan_.batch.sequence_length % pieces != 0) {
      broken("batch.sequence_length",
             fmt::format("sequence_length is split into {}ulysses x ring = {}{} x {} = {} pieces, but {} is no "
                         "multiple of {}; nearest legal "
                         "sequence_length: {}",
                         pieces == plan_.context() ? "" : "2 x ", pieces == plan_.context() ? "" : "2 x ",
                         parallel_.ulysses, parallel_.ring, pieces, plan_.batch.sequence_length, pieces,
                         either(nearest_multiples(pieces, plan_.batch.sequence_length))));
    }
    if (plan_.kernels.attention == AttentionKernel::unfused && parallel_.ring > 1) {
      broken("kernels.attention", fmt::format("kernels.attention unfused needs all keys of a row on one rank, but ring "
                                              "is {}; legal: ring 1, or attention flash",
                                              parallel_.ring));
    }
  }

  /// Products of tensor and ulysses next to `wanted` that split or replicate the KV heads evenly and divide the heads.
  std::vector<std::int64_t> legal_kv_splits(std::int64_t wanted) const {
    std::int64_t below = 0, above = 0;
    for (std::int64_t split = 1; split <= model_.heads; ++split) {
      if (model_.heads % split != 0 || (model_.kv_heads % split != 0 && split % model_.kv_heads != 0)) continue;
      if (split < wanted) below = split;
      if (split > wanted && above == 0) above = split;
    }
    std::vector<std::int64_t> found;
    if (below > 0) found.push_back(below);
    if (above > 0) found.push_back(above);
    return found;
  }

  void check_experts() {
    if (parallel_.expert == 1) return;
    const std::int64_t replicas = parallel_.data * plan_.context();
    if (!model_.is_moe()) {
      return broken("parallel.expert",
                    fmt::format("expert is {}, but the model has no experts to spread; legal: 1", parallel_.expert));
    }
    const std::vector<std::int64_t> nearest =
        nearest_divisors(std::gcd(model_.moe.experts, replicas), parallel_.expert);
    if (model_.moe.experts % parallel_.expert != 0) {
      broken("parallel.expert",
             fmt::format("the model's {} experts are not divisible by expert = {}; nearest legal expert: {}",
                         model_.moe.experts, parallel_.expert, either(nearest)));
    }
    if (replicas % parallel_.expert != 0) {
      broken("parallel.expert", fmt::format("expert groups are cut from data x ulysses x ring = {} x {} x {} = {} "
                                            "ranks, which {} does not divide; nearest "
                                            "legal expert: {}",
                                            parallel_.data, parallel_.ulysses, parallel_.ring, replicas,
                                            parallel_.expert, either(nearest)));
    }
  }

  void check_zero() {
    const std::int64_t replicas = parallel_.data * plan_.context(), group = parallel_.zero_group;
    if (group == 0 || parallel_.zero == 0) return;
    if (replicas % group != 0) {
      return broken("parallel.zero_group", fmt::format("zero_group must divide data x ulysses x ring = {} x {} x {} = "
                                                       "{}, found {}; nearest legal zero_group: {}, or auto",
                                                       parallel_.data, parallel_.ulysses, parallel_.ring, replicas,
                                                       group, either(nearest_divisors(replicas, group))));
    }
    if (group % parallel_.expert != 0 && parallel_.expert % group != 0) {
      broken(
          "parallel.zero_group",
          fmt::format(
              "zero_group = {} and expert = {}: one must be a multiple of the other, so that an expert's shards lie on "
              "the ranks that hold it; legal: zero_group {}, or auto",
              group, parallel_.expert, parallel_.expert));
    }
  }

  void check_positions() {
    if (model_.position == Position::learned && model_.position_rows > 0 &&
        plan_.batch.sequence_length > model_.position_rows) {
      broken("batch.sequence_length",
             fmt::format("sequence_length is {}, but the model has learned positions for {} tokens; legal: at most {}",
                         plan_.batch.sequence_length, model_.position_rows, model_.position_rows));
    }
  }

  void check_precision() {
    const std::map<NumberFormat, FlopsPerSecond>& peak = plan_.hardware.device.peak;
    const NumberFormat compute = plan_.precision.compute;
    if (!plan_.hardware.device.is_cpu && !peak.contains(compute)) {
      std::vector<std::string_view> known;
      for (const auto& [format, rate] : peak) known.push_back(name_of(format));
      broken("precision.compute", fmt::format("the device {} does not compute in {}; legal: {}",
                                              plan_.hardware.device.name, name_of(compute), fmt::join(known, ", ")));
    }
    if (payload_bits(plan_.precision.master) < std::min(32, payload_bits(compute))) {
      broken("precision.master", fmt::format("master weights in {} are narrower than compute in {}; legal: fp32, or {}",
                                             name_of(plan_.precision.master), name_of(compute), name_of(compute)));
    }
  }

  void check_activations() {
    const ActivationSpec& activations = plan_.activations;
    check_bits(activations.bits_by_stage);
    const std::vector<std::int64_t>& recomputed = activations.recompute_layers;
    if (recomputed.size() > 1 && static_cast<std::int64_t>(recomputed.size()) != parallel_.pipeline) {
      return broken("activations.recompute_layers",
                    fmt::format("recompute_layers has {} entries, but there are {} pipeline stages; legal: one entry "
                                "for all, {} entries, or auto",
                                recomputed.size(), parallel_.pipeline, parallel_.pipeline));
    }
    for (std::size_t stage = 0; stage < recomputed.size(); ++stage) {
      // One entry for all is cut to each stage's layers, so that it must only fit the largest stage.
      const std::int64_t layers =
          recomputed.size() == 1 ? most_layers_of_a_stage() : layers_of_stage(static_cast<std::int64_t>(stage));
      if (recomputed[stage] > layers) {
        broken("activations.recompute_layers",
               fmt::format("recompute_layers asks for {} layers{}, which has {}; legal: 0 to {}", recomputed[stage],
                           recomputed.size() == 1 ? " of the largest stage" : fmt::format(" of stage {}", stage),
                           layers, layers));
      }
    }
  }

  void check_bits(const std::vector<int>& bits) {
    if (!bits.empty() && static_cast<std::int64_t>(bits.size()) != parallel_.pipeline) {
      broken("activations.bits_by_stage",
             fmt::format("bits_by_stage has {} entries, but there are {} pipeline stages; legal: {} entries, or auto",
                         bits.size(), parallel_.pipeline, parallel_.pipeline));
    }
    for (const int width : bits) {
      if ((width >= 2 && width <= 8) || width == 16) continue;
      broken("activations.bits_by_stage",
             fmt::format("bits_by_stage holds {}, for which there is no storage format; legal: 2 to 8, or 16", width));
    }
  }

  /// Layers of a pipeline rank, all its chunks together (auto: as even as possible, earlier virtual stages get the
  /// rest).
  std::int64_t layers_of_stage(std::int64_t stage) const {
    const std::vector<std::int64_t>& given = parallel_.layers_per_stage;
    const std::int64_t stages = plan_.virtual_stages();
    std::int64_t layers = 0;
    for (std::int64_t i = stage; i < stages; i += parallel_.pipeline) {
      const bool listed = i < static_cast<std::int64_t>(given.size());
      layers +=
          listed ? given[static_cast<std::size_t>(i)] : model_.layers / stages + (i < model_.layers % stages ? 1 : 0);
    }
    return layers;
  }

  std::int64_t most_layers_of_a_stage() const {
    std::int64_t most = 0;
    for (std::int64_t stage = 0; stage < parallel_.pipeline; ++stage) most = std::max(most, layers_of_stage(stage));
    return most;
  }

  void check_gradients() {
    const GradientSpec& gradients = plan_.gradients;
    if (payload_bits(gradients.wire) <= 8 && gradients.reduce == GradientReduce::all_reduce) {
      broken("gradients.reduce", fmt::format("gradients.wire {} cannot be summed on the way (block scales differ); "
                                             "legal: reduce all_to_all_sum, or wire "
                                             "bf16 or fp32",
                                             name_of(gradients.wire)));
    }
  }

  void check_training() {
    const OptimizerSpec& optimizer = plan_.optimizer;
    if (optimizer.beta1 >= 1 || optimizer.beta2 >= 1) {
      broken(optimizer.beta1 >= 1 ? "optimizer.beta1" : "optimizer.beta2",
             fmt::format("optimizer.beta1 {} and beta2 {} must be below 1; legal: 0 to 0.9999", optimizer.beta1,
                         optimizer.beta2));
    }
    if (optimizer.minimum_learning_rate > optimizer.learning_rate) {
      broken("optimizer.minimum_learning_rate",
             fmt::format("minimum_learning_rate {} is above learning_rate {}; legal: 0 to {}",
                         optimizer.minimum_learning_rate, optimizer.learning_rate, optimizer.learning_rate));
    }
    if (!plan_.sim.slow_ranks.empty() && plan_.sim.slow_ranks.rbegin()->first >= plan_.world_size()) {
      broken("sim.slow_ranks",
             fmt::format("slow_ranks names rank {}, but there are {} ranks; legal: 0 to {}",
                         plan_.sim.slow_ranks.rbegin()->first, plan_.world_size(), plan_.world_size() - 1));
    }
  }

  const Plan& plan_;
  const ParallelSpec& parallel_;
  const ModelSpec& model_;
  std::vector<Diagnostic> broken_;
};

}  // namespace

std::vector<Diagnostic> check_plan(const Plan& plan) {
  return PlanChecker(plan).check();
}

}  // namespace reckon
