// The one list of ops: what one rank does for the embedding, one layer, or the head, for one micro-batch, with shapes,
// FLOPs, bytes moved, collectives, and the tensors each op makes, frees and keeps for backward. The cost model prices
// it, the simulator plays it and the runtime executes it under the same names.
//
// Life of a tensor: it is allocated by the op that outputs it and freed after the last op that reads it in forward,
// unless some op saves it: then it lives until that op's backward. In backward each op reads the gradients of its
// outputs and makes the gradients of its inputs; the former are freed after it.
//
// Shape letters: T tokens of the rank's micro-batch (rows x sequence / context), t tensor degree, h hidden, a heads,
// g KV heads, d head_dim, f FFN width, V vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/activation_class.h"
#include "plan/collective.h"
#include "plan/number_format.h"
#include "plan/plan.h"

namespace reckon {

enum class OpKind { gemm, attention, memory_bound, communication };

/// `batch` products of [m,k] x [k,n]. Input gradient is [m,n] x [n,k], weight gradient [k,m] x [m,n].
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct AttentionShape {
  double pairs = 0;  // visible (query, key) pairs of one head, whole micro-batch of this rank's heads and context share
  std::int64_t queries = 0, keys = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  /// QK^T and PV, visible pairs only.
  double forward_flops() const {
    return 2.0 * pairs * static_cast<double>(heads) * static_cast<double>(head_dim + value_dim);
  }
};

struct Tensor {
  std::string_view name;
  ActivationClass kept_as = ActivationClass::transient;
  std::int64_t elements = 0;
  NumberFormat format = NumberFormat::bf16;
  int storage_of = -1;  // index of the tensor whose storage it shares (a view or an in-place result); -1 = its own
  std::int64_t gradient_rest = 0;  // elements by which its gradient is larger: what rounding its parts has cut off

  Bytes bytes() const { return Bytes(elements * (payload_bits(format) / 8)); }
};

struct Op {
  std::string_view name;  // "attention_norm", "qkv", ...; components are "forward.qkv", "backward.qkv"
  OpKind kind = OpKind::memory_bound;
  GemmShape gemm;                               // kind gemm
  AttentionShape attention;                     // kind attention
  Bytes forward_traffic, backward_traffic;      // bytes read and written by a memory-bound op
  std::vector<int> inputs, outputs;             // tensors (indices into OpList::tensors)
  std::vector<int> saved;                       // tensors that its backward reads
  bool gradient_in_place = false;               // the inputs' gradients take over the output gradient's storage
  bool gradient_over_input = false;             // the first input's gradient overwrites that (saved) input
  Bytes forward_workspace, backward_workspace;  // temporaries that live only inside the op
  std::vector<CollectiveCall> forward_collectives, backward_collectives;
  std::int64_t weights = 0;  // weight elements on this rank
  int launches = 1;          // kernels of one forward pass
  int backward_launches = 2;
};

struct OpList {
  std::vector<Tensor> tensors;  // tensor 0 is the input (residual stream), the last output the result
  std::vector<Op> ops;
};

/// Format of weights and activations: the compute format; bf16 where products compute in fewer bits.
NumberFormat tensor_format(const Plan& plan);

/// What a list is made for; everything else comes from the plan.
enum class Section { embedding, dense_layer, moe_layer, head };

/// Attention work of the plan's documents on one rank and micro-batch, relative to one full causal row.
struct AttentionWork {
  double pairs_per_row = 0;    // visible pairs of one row over all ranks
  double imbalance = 1.0;      // slowest ring rank / mean
  double key_blocks = 0;       // keys and values that the busiest ring rank moves for a row, in units of its own block
  double gradient_blocks = 0;  // their gradients, in backward
  double messages = 0, gradient_messages = 0;
};

/// Ops of one section on one rank for one micro-batch, in forward order. Throws std::logic_error on an unchecked plan.
OpList section_ops(const Plan& plan, Section section, const AttentionWork& work);

/// Work of a full causal row (or of the padded, whole-row or windowed one that the plan asks for) with documents that
/// fill whole rows.
AttentionWork single_document_work(const Plan& plan);

/// Visible pairs of a causal document of `tokens`, on average over the layers, of which some may have a window.
double causal_pairs(const ModelSpec& model, std::int64_t tokens);

/// The placement that `auto` stands for: of whole rows in one document the mirrored runs of zigzag, which are balanced
/// (striped where the row does not divide into them); without a ring nothing is placed. Stays auto for packed
/// documents, where it is chosen row by row.
Placement planned_placement(const Plan& plan);

/// Canonical shape text of an op, the key of measured samples: "gemm 4096x6144x4096", "attention ...".
std::string shape_key(const Op& op);
/// Its beginning for attention: all but keys and pairs, which depend on the documents.
std::string attention_key(const AttentionShape& shape);
/// Pairs named in the shape key of attention; empty for other text.
std::optional<double> pairs_of_key(std::string_view key);

}  // namespace reckon
