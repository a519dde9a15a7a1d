// Degrees against nodes, batch, layers, heads and widths.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/nearest_legal.h"
#include "plan/plan_rules.h"

namespace reckon {

namespace {

void check_world(Rules& rules) {
  const HardwareSpec& hardware = rules.plan.hardware;
  if (rules.plan.nodes == 0 || hardware.device.is_cpu) return;  // ranks of a CPU machine share its cores
  const std::int64_t devices = rules.plan.nodes * hardware.devices_per_node, world = rules.plan.world_size();
  if (devices == world) return;
  std::string legal;
  const std::int64_t others = world / rules.parallel.data;
  if (devices % others == 0) legal = fmt::format("; legal: data {}", devices / others);
  if (world % hardware.devices_per_node == 0) {
    legal += fmt::format("{} nodes {}", legal.empty() ? "; legal:" : ", or", world / hardware.devices_per_node);
  } else {
    legal +=
        legal.empty() ? "; legal: nodes auto, which leaves devices idle" : ", or nodes auto, which leaves devices idle";
  }
  rules.broken("nodes",
               fmt::format("data x pipeline x tensor x ulysses x ring = {} x {} x {} x {} x {} = {} ranks, but "
                           "nodes x devices_per_node = "
                           "{} x {} = {} devices{}",
                           rules.parallel.data, rules.parallel.pipeline, rules.parallel.tensor, rules.parallel.ulysses,
                           rules.parallel.ring, world, rules.plan.nodes, hardware.devices_per_node, devices, legal));
}

void check_batch(Rules& rules) {
  const BatchSpec& batch = rules.plan.batch;
  const std::int64_t rows = batch.micro_batch * rules.parallel.data;
  if (batch.global_batch % rows == 0) return;
  rules.broken("batch.global_batch", fmt::format("global_batch = micro_batch x data x accumulation, but {} is not a "
                                                 "multiple of {} x {} = {}; nearest legal global_batch: {}",
                                                 batch.global_batch, batch.micro_batch, rules.parallel.data, rows,
                                                 either(nearest_multiples(rows, batch.global_batch))));
}

void check_stages(Rules& rules) {
  const std::int64_t stages = rules.plan.virtual_stages();
  const std::vector<std::int64_t>& layers = rules.parallel.layers_per_stage;
  if (layers.empty()) {
    if (stages > rules.model.layers) {
      rules.broken(
          "parallel.pipeline",
          fmt::format("pipeline x chunks = {} x {} = {} virtual stages, but the model has {} layers; legal: at most {}",
                      rules.parallel.pipeline, rules.parallel.chunks, stages, rules.model.layers, rules.model.layers));
    }
    return;
  }
  if (static_cast<std::int64_t>(layers.size()) != stages) {
    return rules.broken(
        "parallel.layers_per_stage",
        fmt::format("layers_per_stage has {} entries, but pipeline x chunks = {} x {} = {} virtual stages; "
                    "legal: {} entries, or auto",
                    layers.size(), rules.parallel.pipeline, rules.parallel.chunks, stages, stages));
  }
  const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != rules.model.layers) {
    rules.broken("parallel.layers_per_stage",
                 fmt::format("layers_per_stage adds up to {} = {}, but the model has {} layers: {} layers {}; legal: "
                             "entries that add up to {}, or auto",
                             fmt::join(layers, " + "), sum, rules.model.layers, std::abs(rules.model.layers - sum),
                             sum < rules.model.layers ? "are missing" : "too many", rules.model.layers));
  }
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    if (layers[i] == 0) {
      rules.broken(
          "parallel.layers_per_stage",
          fmt::format("virtual stage {} of layers_per_stage has no layers; only the first and the last, which hold "
                      "embedding and head, may have none; legal: 1 or more",
                      i));
    }
  }
}

void check_schedule(Rules& rules) {
  if (rules.parallel.schedule != ScheduleKind::interleaved) {
    if (rules.parallel.chunks > 1) {
      rules.broken("parallel.chunks",
                   fmt::format("chunks is {}, but only schedule interleaved has virtual stages; legal: "
                               "chunks 1, or schedule interleaved",
                               rules.parallel.chunks));
    }
    return;
  }
  if (rules.parallel.pipeline == 1) {  // chunks 1: a warning, nothing to interleave
    if (rules.parallel.chunks > 1)
      rules.broken("parallel.chunks",
                   fmt::format("chunks is {}, but with pipeline 1 there is nothing to interleave; legal: chunks 1, or "
                               "pipeline 2 or more",
                               rules.parallel.chunks));
    return;
  }
  if (rules.parallel.chunks == 1) {
    rules.broken("parallel.chunks",
                 "schedule interleaved needs chunks of 2 or more virtual stages a rank, found 1; legal: chunks 2, or "
                 "schedule 1f1b");
  }
  const std::int64_t rows = rules.plan.batch.micro_batch * rules.parallel.data;
  if (rules.plan.batch.global_batch % rows == 0 && rules.plan.micro_batches() % rules.parallel.pipeline != 0) {
    rules.broken("batch.global_batch",
                 fmt::format("schedule interleaved needs a multiple of pipeline = {} micro-batches, but global_batch / "
                             "(micro_batch x data) = {} / ({} x {}) "
                             "= {}; nearest legal global_batch: {}",
                             rules.parallel.pipeline, rules.plan.batch.global_batch, rules.plan.batch.micro_batch,
                             rules.parallel.data, rules.plan.micro_batches(),
                             either(nearest_multiples(rows * rules.parallel.pipeline, rules.plan.batch.global_batch))));
  }
}

/// FFN width of dense layers; 0 where every layer is MoE.
std::int64_t dense_width(const Rules& rules) {
  for (std::int64_t layer = 0; layer < rules.model.layers; ++layer) {
    if (!rules.model.layer_is_moe(layer)) return rules.model.ffn_hidden;
  }
  return 0;
}

/// Every legal tensor degree divides it.
std::int64_t legal_tensor_base(const Rules& rules) {
  std::int64_t base = rules.model.heads;
  for (const std::int64_t width :
       {dense_width(rules), rules.model.moe.expert_ffn_hidden, rules.model.moe.shared_ffn_hidden})
    base = std::gcd(base, width);
  return base;
}

/// `what` (of the model) must be a multiple of tensor.
void divided_by_tensor(Rules& rules, std::string_view what, std::int64_t number) {
  if (number == 0 || number % rules.parallel.tensor == 0) return;
  rules.broken(
      "parallel.tensor",
      fmt::format("the model's {} is not divisible by tensor: {} / {}; nearest legal tensor: {}", what, number,
                  rules.parallel.tensor, either(nearest_divisors(legal_tensor_base(rules), rules.parallel.tensor))));
}

void check_tensor(Rules& rules) {
  if (rules.parallel.tensor == 1) return;
  divided_by_tensor(rules, "heads", rules.model.heads);
  divided_by_tensor(rules, "ffn_hidden", dense_width(rules));
  if (rules.model.is_moe()) {
    divided_by_tensor(rules, "moe.expert_ffn_hidden", rules.model.moe.expert_ffn_hidden);
    divided_by_tensor(rules, "moe.shared_ffn_hidden", rules.model.moe.shared_ffn_hidden);
  }
  const std::int64_t tokens = rules.plan.batch.sequence_length / rules.plan.context();
  if (rules.parallel.sequence && rules.plan.batch.sequence_length % rules.plan.context() == 0 &&
      tokens % rules.parallel.tensor != 0) {
    rules.broken(
        "batch.sequence_length",
        fmt::format(
            "sequence parallelism splits a row's sequence_length / (ulysses x ring) = {} / ({} x {}) = {} "
            "tokens over tensor = {} ranks, "
            "which does not come out even; nearest legal sequence_length: {}",
            rules.plan.batch.sequence_length, rules.parallel.ulysses, rules.parallel.ring, tokens,
            rules.parallel.tensor,
            either(nearest_multiples(rules.parallel.tensor * rules.plan.context(), rules.plan.batch.sequence_length))));
  }
}

/// Products of tensor and ulysses next to `wanted` that split or replicate the KV heads evenly and divide the heads.
std::vector<std::int64_t> legal_kv_splits(const Rules& rules, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t split = 1; split <= rules.model.heads; ++split) {
    if (rules.model.heads % split != 0 || (rules.model.kv_heads % split != 0 && split % rules.model.kv_heads != 0))
      continue;
    if (split < wanted) below = split;
    if (split > wanted && above == 0) above = split;
  }
  std::vector<std::int64_t> found;
  if (below > 0) found.push_back(below);
  if (above > 0) found.push_back(above);
  return found;
}

void check_context(Rules& rules) {
  const std::int64_t split = rules.parallel.tensor * rules.parallel.ulysses;
  if (rules.model.heads % rules.parallel.tensor == 0 && rules.model.heads % split != 0) {
    rules.broken(
        "parallel.ulysses",
        fmt::format("ulysses deals the heads / tensor = {} / {} = {} heads of a rank to {} ranks, which does not "
                    "come out even; nearest legal ulysses: {}",
                    rules.model.heads, rules.parallel.tensor, rules.model.heads / rules.parallel.tensor,
                    rules.parallel.ulysses,
                    either(nearest_divisors(rules.model.heads / rules.parallel.tensor, rules.parallel.ulysses))));
  }
  if (!rules.model.is_mla() && rules.model.kv_heads % split != 0 && split % rules.model.kv_heads != 0) {
    rules.broken(
        rules.parallel.ulysses > 1 ? "parallel.ulysses" : "parallel.tensor",
        fmt::format("the model's {} kv_heads and tensor x ulysses = {} x {} = {}: one must be a multiple of the "
                    "other (key/value heads are split "
                    "or replicated whole); nearest legal product: {}",
                    rules.model.kv_heads, rules.parallel.tensor, rules.parallel.ulysses, split,
                    either(legal_kv_splits(rules, split))));
  }
  const bool zigzag = rules.plan.documents.placement == Placement::zigzag ||
                      rules.plan.documents.placement == Placement::zigzag_per_document;
  const std::int64_t pieces = rules.plan.context() * (zigzag && rules.parallel.ring > 1 ? 2 : 1);
  if (rules.plan.batch.sequence_length % pieces != 0) {
    rules.broken("batch.sequence_length",
                 fmt::format("sequence_length is split into {}ulysses x ring = {}{} x {} = {} pieces, but {} is no "
                             "multiple of {}; nearest legal "
                             "sequence_length: {}",
                             pieces == rules.plan.context() ? "" : "2 x ", pieces == rules.plan.context() ? "" : "2 x ",
                             rules.parallel.ulysses, rules.parallel.ring, pieces, rules.plan.batch.sequence_length,
                             pieces, either(nearest_multiples(pieces, rules.plan.batch.sequence_length))));
  }
  if (rules.plan.kernels.attention == AttentionKernel::unfused && rules.parallel.ring > 1) {
    rules.broken("kernels.attention",
                 fmt::format("kernels.attention unfused needs all keys of a row on one rank, but ring "
                             "is {}; legal: ring 1, or attention flash",
                             rules.parallel.ring));
  }
}

void check_experts(Rules& rules) {
  if (rules.parallel.expert == 1) return;
  const std::int64_t replicas = rules.parallel.data * rules.plan.context();
  if (!rules.model.is_moe()) {
    return rules.broken("parallel.expert", fmt::format("expert is {}, but the model has no experts to spread; legal: 1",
                                                       rules.parallel.expert));
  }
  const std::vector<std::int64_t> nearest =
      nearest_divisors(std::gcd(rules.model.moe.experts, replicas), rules.parallel.expert);
  if (rules.model.moe.experts % rules.parallel.expert != 0) {
    rules.broken("parallel.expert",
                 fmt::format("the model's {} experts are not divisible by expert = {}; nearest legal expert: {}",
                             rules.model.moe.experts, rules.parallel.expert, either(nearest)));
  }
  if (replicas % rules.parallel.expert != 0) {
    rules.broken("parallel.expert", fmt::format("expert groups are cut from data x ulysses x ring = {} x {} x {} = {} "
                                                "ranks, which {} does not divide; nearest "
                                                "legal expert: {}",
                                                rules.parallel.data, rules.parallel.ulysses, rules.parallel.ring,
                                                replicas, rules.parallel.expert, either(nearest)));
  }
}

void check_zero(Rules& rules) {
  const std::int64_t replicas = rules.parallel.data * rules.plan.context(), group = rules.parallel.zero_group;
  if (group == 0 || rules.parallel.zero == 0) return;
  if (replicas % group != 0) {
    return rules.broken("parallel.zero_group",
                        fmt::format("zero_group must divide data x ulysses x ring = {} x {} x {} = "
                                    "{}, found {}; nearest legal zero_group: {}, or auto",
                                    rules.parallel.data, rules.parallel.ulysses, rules.parallel.ring, replicas, group,
                                    either(nearest_divisors(replicas, group))));
  }
  if (group % rules.parallel.expert != 0 && rules.parallel.expert % group != 0) {
    rules.broken(
        "parallel.zero_group",
        fmt::format(
            "zero_group = {} and expert = {}: one must be a multiple of the other, so that an expert's shards lie on "
            "the ranks that hold it; legal: zero_group {}, or auto",
            group, rules.parallel.expert, rules.parallel.expert));
  }
}

void check_positions(Rules& rules) {
  const std::int64_t learned = rules.model.position_rows - rules.model.position_offset;
  if (rules.model.position == Position::learned && rules.model.position_rows > 0 &&
      rules.plan.batch.sequence_length > learned) {
    rules.broken(
        "batch.sequence_length",
        fmt::format("sequence_length is {}, but the model has learned positions for {} tokens; legal: at most {}",
                    rules.plan.batch.sequence_length, learned, learned));
  }
}

}  // namespace

void check_parallelism(Rules& rules) {
  check_world(rules);
  check_batch(rules);
  check_stages(rules);
  check_schedule(rules);
  check_tensor(rules);
  check_context(rules);
  check_experts(rules);
  check_zero(rules);
  check_positions(rules);
}

}  // namespace reckon
