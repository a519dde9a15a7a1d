// Every hand-written backward pass against libtorch's autograd in FP64. Both compute the same expression in the same
// precision, so they agree to rounding: a few hundred additions of numbers of order 1 leave less than 1e-12.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "runtime/train/ops/ffn_activation.h"
#include "runtime/train/ops/loss.h"
#include "runtime/train/ops/matrix_product.h"
#include "runtime/train/ops/norm.h"
#include "runtime/train/ops/rotary.h"
#include "runtime/train/ring_attention.h"

namespace reckon {
namespace {

constexpr double kRounding = 1e-12;

class OpGradient : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    at::manual_seed(7);
  }
  static at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }
  static at::Tensor leaf(const at::Tensor& value) { return value.clone().requires_grad_(true); }
  static void expect_equal(const at::Tensor& got, const at::Tensor& expected) {
    ASSERT_EQ(got.sizes(), expected.sizes());
    EXPECT_LT((got - expected).abs().max().item<double>(), kRounding * (1.0 + expected.abs().max().item<double>()));
  }
};

TEST_F(OpGradient, LinearAgreesWithAutograd) {
  const at::Tensor x = random({5, 7}), w = random({3, 7}), dy = random({5, 3});
  const at::Tensor leaf_x = leaf(x), leaf_w = leaf(w);
  const at::Tensor expected = at::matmul(leaf_x, leaf_w.t());
  expected.backward(dy);

  at::Tensor y = at::empty({5, 3}, at::kDouble), dx = at::empty({5, 7}, at::kDouble);
  const at::Tensor before = random({3, 7}), dw = before.clone();
  linear_forward(x, w, y);
  linear_input_gradient(dy, w, dx);
  linear_weight_gradient(dy, x, dw);
  expect_equal(y, expected.detach());
  expect_equal(dx, leaf_x.grad());
  expect_equal(dw - before, leaf_w.grad());
}

TEST_F(OpGradient, RmsNormAgreesWithAutograd) {
  const at::Tensor x = random({6, 10}), w = random({10}), dy = random({6, 10}), residual = random({6, 10});
  const at::Tensor leaf_x = leaf(x), leaf_w = leaf(w);
  const at::Tensor expected = leaf_x * (leaf_x.square().mean(-1, true) + 1e-5).rsqrt() * leaf_w;
  expected.backward(dy);

  const at::Tensor y = at::empty_like(x), statistics = at::empty({6}, at::kDouble);
  NormWeights weights{w, {}, at::zeros({10}, at::kDouble), {}};
  norm_forward(Norm::rms_norm, 1e-5, x, weights, y, statistics);
  expect_equal(y, expected.detach());
  const at::Tensor in_place = dy.clone();
  norm_backward(Norm::rms_norm, in_place, x, weights, statistics, in_place, false);
  expect_equal(in_place, leaf_x.grad());
  expect_equal(weights.weight_gradient, leaf_w.grad());
  const at::Tensor sum = residual.clone();
  norm_backward(Norm::rms_norm, dy, x, weights, statistics, sum, true);
  expect_equal(sum, leaf_x.grad() + residual);
}

TEST_F(OpGradient, LayerNormAgreesWithAutograd) {
  const at::Tensor x = random({6, 10}), w = random({10}), b = random({10}), dy = random({6, 10});
  const at::Tensor leaf_x = leaf(x), leaf_w = leaf(w), leaf_b = leaf(b);
  const at::Tensor expected = at::layer_norm(leaf_x, {10}, leaf_w, leaf_b, 1e-5);
  expected.backward(dy);

  const at::Tensor y = at::empty_like(x), statistics = at::empty({6, 2}, at::kDouble);
  NormWeights weights{w, b, at::zeros({10}, at::kDouble), at::zeros({10}, at::kDouble)};
  norm_forward(Norm::layer_norm, 1e-5, x, weights, y, statistics);
  expect_equal(y, expected.detach());
  const at::Tensor dx = at::empty_like(x);
  norm_backward(Norm::layer_norm, dy, x, weights, statistics, dx, false);
  expect_equal(dx, leaf_x.grad());
  expect_equal(weights.weight_gradient, leaf_w.grad());
  expect_equal(weights.bias_gradient, leaf_b.grad());
}

TEST_F(OpGradient, RotationAgreesWithAutogradAndTurnsBack) {
  ModelSpec model;
  model.head_dim = 8;
  const std::int64_t heads = 3, rows = 5;
  const RotaryTable table = rotary_table(model, 16, at::kDouble);
  const at::Tensor positions = at::randint(0, 16, {rows}, at::kInt);
  const at::Tensor x = random({rows, heads * 8}), dy = random({rows, heads * 8});
  const at::Tensor leaf_x = leaf(x);
  const at::Tensor by_head = leaf_x.view({rows, heads, 8});
  const at::Tensor cosine = table.cosine.index_select(0, positions).repeat({1, 2}).unsqueeze(1);
  const at::Tensor sine = table.sine.index_select(0, positions).repeat({1, 2}).unsqueeze(1);
  const at::Tensor half_turned = at::cat({-by_head.slice(2, 4), by_head.slice(2, 0, 4)}, 2);
  const at::Tensor expected = (by_head * cosine + half_turned * sine).flatten(1);
  expected.backward(dy);

  const at::Tensor y = x.clone(), dx = dy.clone();
  rotate_heads(y, heads, 8, positions, table, +1);
  rotate_heads(dx, heads, 8, positions, table, -1);
  expect_equal(y, expected.detach());
  expect_equal(dx, leaf_x.grad());
}

TEST_F(OpGradient, AttentionOnPartsOfOneBufferAgreesWithAutograd) {
  const std::int64_t rows = 2, length = 9, heads = 4, kv_heads = 2, dim = 8;
  const std::int64_t tokens = rows * length, q = heads * dim, kv = kv_heads * dim;
  const at::Tensor qkv = random({tokens, q + 2 * kv}), dy = random({tokens, q});
  const at::Tensor leaf_qkv = leaf(qkv);
  const auto by_head = [&](std::int64_t first, std::int64_t width, std::int64_t repeat) {
    return leaf_qkv.slice(1, first, first + width)
        .view({rows, length, width / dim, dim})
        .transpose(1, 2)
        .repeat_interleave(repeat, 1);
  };
  const at::Tensor mask = at::full({length, length}, -1e30, at::kDouble).triu(1);
  const at::Tensor scores = at::matmul(by_head(0, q, 1), by_head(q, kv, 2).transpose(2, 3)) / std::sqrt(8.0) + mask;
  const at::Tensor expected =
      at::matmul(scores.softmax(-1), by_head(q + kv, kv, 2)).transpose(1, 2).reshape({tokens, q});
  expected.backward(dy);

  const at::Tensor query = qkv.slice(1, 0, q), key = qkv.slice(1, q, q + kv), value = qkv.slice(1, q + kv);
  RowShare whole_row;
  whole_row.transfers.own = {{0, length, 0, length, 0}};
  const RingAttention::Rows shares(rows, std::make_shared<const RowShare>(whole_row));
  const at::Tensor output = at::empty_like(dy), log_sum_exp = at::empty({rows * heads, length}, at::kDouble);
  const at::Tensor gradient = at::empty_like(qkv);
  RingAttention attention(shares, dim, {});
  attention.forward(query, {key, value}, output, log_sum_exp);
  attention.backward(dy, query, {key, value}, output, log_sum_exp, gradient.slice(1, 0, q),
                     {gradient.slice(1, q, q + kv), gradient.slice(1, q + kv)},
                     {gradient.slice(1, 0, 0), gradient.slice(1, 0, 0)});
  expect_equal(output, expected.detach());
  expect_equal(gradient, leaf_qkv.grad());
}

TEST_F(OpGradient, GatedActivationAgreesWithAutograd) {
  const at::Tensor gate_up = random({5, 12}), dy = random({5, 6});
  const at::Tensor leaf_x = leaf(gate_up);
  const at::Tensor expected = at::silu(leaf_x.slice(1, 0, 6)) * leaf_x.slice(1, 6);
  expected.backward(dy);

  const at::Tensor hidden = at::empty({5, 6}, at::kDouble), gradient = gate_up.clone();
  activation_forward(Activation::silu, gate_up.slice(1, 0, 6), gate_up.slice(1, 6), hidden);
  expect_equal(hidden, expected.detach());
  const at::Tensor apart = at::empty_like(gate_up);  // gate and up in buffers of their own
  activation_backward(Activation::silu, dy, gate_up.slice(1, 0, 6).contiguous(), gate_up.slice(1, 6).contiguous(),
                      apart);
  expect_equal(apart, leaf_x.grad());
  activation_backward(Activation::silu, dy, gradient.slice(1, 0, 6), gradient.slice(1, 6), gradient);
  expect_equal(gradient, leaf_x.grad());
}

TEST_F(OpGradient, PlainActivationsAgreeWithAutograd) {
  const std::pair<Activation, std::function<at::Tensor(const at::Tensor&)>> cases[] = {
      {Activation::gelu, [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
      {Activation::silu, [](const at::Tensor& x) { return at::silu(x); }},
      {Activation::relu, [](const at::Tensor& x) { return at::relu(x); }},
      {Activation::squared_relu, [](const at::Tensor& x) { return at::relu(x).square(); }},
  };
  for (const auto& [activation, reference] : cases) {
    const at::Tensor x = random({5, 6}), dy = random({5, 6});
    const at::Tensor leaf_x = leaf(x);
    const at::Tensor expected = reference(leaf_x);
    expected.backward(dy);
    const at::Tensor hidden = at::empty_like(x), gradient = at::empty_like(x);
    activation_forward(activation, x, {}, hidden);
    activation_backward(activation, dy, x, {}, gradient);
    expect_equal(hidden, expected.detach());
    expect_equal(gradient, leaf_x.grad());
  }
}

TEST_F(OpGradient, CrossEntropyAgreesWithAutogradAndSkipsPadding) {
  const at::Tensor logits = random({6, 11}) * 3.0;
  const at::Tensor targets = at::tensor({3, 0, 10, -1, 5, 5}, at::kInt);
  const at::Tensor leaf_x = leaf(logits);
  const at::Tensor expected =
      at::cross_entropy_loss(leaf_x, targets.to(at::kLong), {}, at::Reduction::Sum, /*ignore_index=*/-1);
  (expected * 0.25).backward();

  const at::Tensor gradient = logits.clone(), log_sum_exp = at::empty({6}, at::kDouble);
  const double loss = cross_entropy_forward(gradient, targets, {}, log_sum_exp);
  EXPECT_NEAR(loss, expected.item<double>(), kRounding * 100.0);
  cross_entropy_backward(gradient, targets, {}, log_sum_exp, 0.25);
  expect_equal(gradient, leaf_x.grad());
}

// One rank holds columns 0 to 5, the other 6 to 10 and one column of padding; the reductions are done by hand.
TEST_F(OpGradient, CrossEntropyOverTwoColumnPartsEqualsTheWhole) {
  const at::Tensor logits = random({4, 11});
  const at::Tensor targets = at::tensor({3, 0, 10, 5}, at::kInt);
  const at::Tensor whole = logits.clone(), expected = at::empty({4}, at::kDouble);
  const double expected_loss = cross_entropy_forward(whole, targets, {}, expected);
  cross_entropy_backward(whole, targets, {}, expected, 1.0);

  const at::Tensor padding = at::full({4, 1}, 99.0, at::kDouble);
  const at::Tensor parts[2] = {logits.slice(1, 0, 6).contiguous(), at::cat({logits.slice(1, 6), padding}, 1)};
  const at::Tensor gradients[2] = {whole.slice(1, 0, 6), at::cat({whole.slice(1, 6), at::zeros_like(padding)}, 1)};
  for (int rank = 0; rank < 2; ++rank) {
    VocabularyGroup group;
    group.first_column = rank * 6;
    group.columns = rank == 0 ? 6 : 5;
    group.maximum = [&](const at::Tensor& maximum) { maximum.copy_(logits.amax(1)); };
    group.sum = [&](const at::Tensor& sums) {
      sums[0].copy_((logits - logits.amax(1, true)).exp().sum(1));
      sums[1].copy_(logits.gather(1, targets.to(at::kLong).unsqueeze(1)).squeeze(1));
    };
    const at::Tensor part = parts[rank].clone(), log_sum_exp = at::empty({4}, at::kDouble);
    EXPECT_NEAR(cross_entropy_forward(part, targets, group, log_sum_exp), expected_loss, kRounding * 100.0);
    cross_entropy_backward(part, targets, group, log_sum_exp, 1.0);
    expect_equal(part, gradients[rank]);
  }
}

}  // namespace
}  // namespace reckon
