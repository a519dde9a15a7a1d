// Packed documents and context parallelism with tensor, sequence, pipeline and data parallelism, ZeRO and recomputation
// against one rank: loss, every gradient and weights after three steps. Sums differ in the order of FP32 additions
// only.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "tests/train/reference_model.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> gradients, weights;  // whole tensors
};

/// Puts a rank's slice into the whole tensor.
void place(std::map<std::string, at::Tensor>& whole, const LocalParameter& parameter, const at::Tensor& slice) {
  const std::vector<std::int64_t>& shape = parameter.whole.shape;
  at::Tensor& target = whole[parameter.whole.name];
  if (!target.defined()) target = at::zeros(shape, slice.options());
  const bool columns = parameter.whole.split == Split::columns;
  const std::int64_t dimension = columns ? 1 : 0;
  const bool is_whole = parameter.whole.split == Split::replicated;
  const std::int64_t first = is_whole ? 0 : parameter.first;
  const std::int64_t count = std::min(slice.size(dimension), shape[static_cast<std::size_t>(dimension)] - first);
  if (count > 0) target.narrow(dimension, first, count).copy_(slice.narrow(dimension, 0, count));
}

Outcome train(const Plan& plan, int steps) {
  Outcome outcome;
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    const auto collect = [&](std::map<std::string, at::Tensor>& whole, const at::Tensor& buffer) {
      const std::lock_guard lock(mutex);
      const Coordinates& at = trainer.groups().coordinates;
      if (at.data + at.ulysses + at.ring != 0) return;  // the others hold the same weights
      for (const LocalParameter& parameter : trainer.parameters().layout().parameters)
        place(whole, parameter, trainer.parameters().view(buffer, parameter));
    };
    for (int s = 0; s < steps; ++s) {
      StepResult step = trainer.forward_backward(s);
      if (s == 0 && plan.parallel.zero == 0) collect(outcome.gradients, trainer.parameters().gradients());
      trainer.update(s, step);
      if (rank != 0) continue;
      outcome.losses.push_back(step.loss);
      outcome.norms.push_back(step.gradient_norm);
    }
    collect(outcome.weights, trainer.parameters().weights());
  });
  return outcome;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

struct Case {
  std::string name;
  std::int64_t ulysses = 1, ring = 1, data = 1, tensor = 1, pipeline = 1, micro_batch = 1, kv_heads = 2;
  bool sequence = false;
  int zero = 0;
  Recompute recompute = Recompute::none;
  Placement placement = Placement::automatic;
  Rows rows = Rows::packed;
  AttentionScope attention = AttentionScope::per_document;
  bool single = false;  // rows cut from one stream
};

/// A file of document lengths, some longer than a row of 24 tokens.
std::string lengths_file() {
  const auto file = std::filesystem::path(::testing::TempDir()) / "reckon_context_grid.lengths";
  std::ofstream(file) << "5\n9\n3\n31\n1\n7\n24\n2\n11\n6\n";
  return file.string();
}

Plan context_plan(const Case& c) {
  Plan plan = small_plan();
  plan.model.layers = 2;
  plan.model.kv_heads = c.kv_heads;
  plan.batch = {24, c.micro_batch, 8};
  plan.parallel.ulysses = c.ulysses;
  plan.parallel.ring = c.ring;
  plan.parallel.data = c.data;
  plan.parallel.tensor = c.tensor;
  plan.parallel.pipeline = c.pipeline;
  plan.parallel.sequence = c.sequence;
  plan.parallel.zero = c.zero;
  plan.activations.recompute = c.recompute;
  plan.documents.source = c.single ? "single" : lengths_file();
  plan.documents.placement = c.placement;
  plan.documents.rows = c.rows;
  plan.documents.attention = c.attention;
  return plan;
}

class ContextGrid : public ::testing::TestWithParam<Case> {};

TEST_P(ContextGrid, EqualsOneRank) {
  Case alone = GetParam();
  alone.ulysses = alone.ring = alone.data = alone.tensor = alone.pipeline = alone.micro_batch = 1;
  alone.sequence = false;
  alone.zero = 0;
  alone.recompute = Recompute::none;
  alone.placement = Placement::contiguous;
  const Outcome expected = train(context_plan(alone), 3), got = train(context_plan(GetParam()), 3);
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_NEAR(got.losses[step], expected.losses[step], 1e-5 * expected.losses[step]);
    EXPECT_NEAR(got.norms[step], expected.norms[step], 1e-4 * expected.norms[step]);
  }
  for (const auto& [name, gradient] : got.gradients)
    EXPECT_LT(difference(gradient, expected.gradients.at(name)), 1e-5) << name;
  EXPECT_EQ(got.weights.size(), expected.weights.size());
  for (const auto& [name, weight] : got.weights) EXPECT_LT(difference(weight, expected.weights.at(name)), 1e-4) << name;
}

constexpr auto kFull = Recompute::full;
constexpr auto kElementwise = Recompute::elementwise;
constexpr auto kWhole = AttentionScope::whole_row;

INSTANTIATE_TEST_SUITE_P(
    Plans, ContextGrid,
    ::testing::Values(
        Case{.name = "ulysses2", .ulysses = 2}, Case{.name = "ulysses4_replicated_kv", .ulysses = 4},
        Case{.name = "ulysses2_rows2", .ulysses = 2, .micro_batch = 2},
        Case{.name = "ring2_contiguous", .ring = 2, .placement = Placement::contiguous},
        Case{.name = "ring3_striped", .ring = 3, .placement = Placement::striped},
        Case{.name = "ring4_zigzag_per_document", .ring = 4, .placement = Placement::zigzag_per_document},
        Case{.name = "ring4_balanced_rows2", .ring = 4, .micro_batch = 2, .placement = Placement::balanced},
        Case{.name = "ulysses2_ring2", .ulysses = 2, .ring = 2},
        Case{.name = "single_ring4", .ring = 4, .single = true},
        Case{.name = "single_ulysses2_ring2", .ulysses = 2, .ring = 2, .single = true},
        Case{.name = "whole_row_ring2", .ring = 2, .attention = kWhole},
        Case{.name = "padded_ulysses2_ring2", .ulysses = 2, .ring = 2, .rows = Rows::padded, .attention = kWhole},
        Case{.name = "padded_per_document_ring2", .ring = 2, .rows = Rows::padded},
        Case{.name = "ring2_data2_zero1", .ring = 2, .data = 2, .zero = 1},
        Case{.name = "ulysses2_tensor2_sequence", .ulysses = 2, .tensor = 2, .sequence = true},
        Case{.name = "ring2_tensor2_sequence_kv1", .ring = 2, .tensor = 2, .kv_heads = 1, .sequence = true},
        Case{.name = "ring2_pipeline2", .ring = 2, .pipeline = 2},
        Case{.name = "ring2_recompute_full", .ring = 2, .recompute = kFull},
        Case{.name = "ulysses2_recompute_full", .ulysses = 2, .recompute = kFull},
        Case{.name = "ulysses2_ring2_data2_elementwise", .ulysses = 2, .ring = 2, .data = 2, .recompute = kElementwise},
        Case{.name = "everything",
             .ulysses = 2,
             .ring = 2,
             .data = 2,
             .tensor = 2,
             .pipeline = 2,
             .sequence = true,
             .zero = 1}),
    [](const auto& instance) { return instance.param.name; });

// The loss of packed rows is that of the documents alone, each a row of its own for the plain model.
TEST(PackedDocuments, AreTrainedAsIfEachWereAlone) {
  const Plan plan = context_plan({.name = "packed"});
  testing::on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount&) {
    const StepResult result = trainer.forward_backward(0);
    const c10::InferenceMode off(false);
    const testing::ReferenceModel model(plan.model,
                                        testing::by_name(trainer.parameters(), trainer.parameters().weights()));
    StepPacker packer(plan);
    const TokenStream tokens(plan);
    double loss = 0;
    std::int64_t targets = 0;
    for (const auto& group : packer.next())
      for (const PackedRow& row : group)
        for (const Piece& piece : row.pieces) {
          if (piece.tokens < 2) continue;
          std::vector<std::int32_t> ids(static_cast<std::size_t>(piece.tokens));
          tokens.read_document(piece.document, piece.first, ids);
          const at::Tensor all = at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).view({1, -1});
          loss += model.loss_sum(all.slice(1, 0, piece.tokens - 1), all.slice(1, 1)).item<double>();
          targets += piece.tokens - 1;
        }
    EXPECT_NEAR(result.loss, loss / static_cast<double>(targets), 1e-5 * result.loss);
  });
}

}  // namespace
}  // namespace reckon
