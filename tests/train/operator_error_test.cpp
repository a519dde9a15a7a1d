// The published order of gradient errors (AGoQ, arXiv 2605.00539, table 13) is one of operators: how far an operator's
// own gradients are off when the tensors that it alone keeps are stored in FP4. Random inputs, FP32, autograd.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "runtime/train/encoded_tensor.h"

namespace reckon {
namespace {

constexpr std::int64_t kTokens = 256, kHidden = 256, kFfn = 640, kHeads = 4, kHeadDim = 64;

class OperatorError : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    at::manual_seed(3);
  }
};

at::Tensor stored(const at::Tensor& values) {
  const Storage storage{NumberFormat::fp4_e2m1, 128, ScaleFormat::bf16};
  const at::Tensor rows = values.reshape({-1, values.size(-1)}).contiguous();
  return decode(encode(rows, storage, {}), storage, at::kFloat).reshape(values.sizes());
}

using Operator = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

std::vector<at::Tensor> gradients(const Operator& compute, const std::vector<at::Tensor>& inputs,
                                  const at::Tensor& output_gradient) {
  std::vector<at::Tensor> leaves, found;
  for (const at::Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  compute(leaves).backward(output_gradient);
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

/// ||found - exact|| / ||exact|| of every input's gradient when all but the weight (`kept`) are stored.
std::vector<double> errors(const Operator& compute, const std::vector<at::Tensor>& inputs, std::size_t kept,
                           const at::Tensor& output_gradient) {
  std::vector<at::Tensor> narrow;
  for (std::size_t i = 0; i < inputs.size(); ++i) narrow.push_back(i == kept ? inputs[i] : stored(inputs[i]));
  const auto exact = gradients(compute, inputs, output_gradient), found = gradients(compute, narrow, output_gradient);
  std::vector<double> list;
  for (std::size_t i = 0; i < exact.size(); ++i)
    list.push_back((found[i] - exact[i]).norm().item<double>() / exact[i].norm().item<double>());
  return list;
}

constexpr std::size_t kNone = 99;

at::Tensor rms_norm(const std::vector<at::Tensor>& in) {
  return in[0] * (in[0].square().mean(-1, true) + 1e-6).rsqrt() * in[1];
}
at::Tensor product(const std::vector<at::Tensor>& in) {
  return at::matmul(in[0], in[1]);
}
at::Tensor swiglu(const std::vector<at::Tensor>& in) {
  return in[0] * at::sigmoid(in[0]) * in[1];
}
at::Tensor attention(const std::vector<at::Tensor>& in) {
  const at::Tensor hidden = at::ones({kTokens, kTokens}, at::kBool).triu(1);
  const at::Tensor scores = at::matmul(in[0], in[1].transpose(1, 2)) / std::sqrt(static_cast<double>(kHeadDim));
  return at::matmul(at::softmax(scores.masked_fill(hidden, -1e30), -1), in[2]);
}

TEST_F(OperatorError, IsOrderedAsPublished) {
  const at::Tensor x = at::randn({kTokens, kHidden}), dy = at::randn({kTokens, kHidden});
  const auto norm = errors(rms_norm, {x, 1 + 0.1 * at::randn({kHidden})}, 1, dy);
  const auto gemm = errors(product, {x, at::randn({kHidden, kHidden})}, 1, dy);
  const auto gate =
      errors(swiglu, {at::randn({kTokens, kFfn}), at::randn({kTokens, kFfn})}, kNone, at::randn({kTokens, kFfn}));
  const auto draw = [] { return at::randn({kHeads, kTokens, kHeadDim}); };
  const auto heads = errors(attention, {draw(), draw(), draw()}, kNone, draw());
  const double norm_input = norm[0], norm_weight = norm[1], weight = gemm[1], query = heads[0], key = heads[1],
               value = heads[2];
  // The norm's input enters its own gradient only through the row's length and a projection.
  EXPECT_LT(norm_input, 0.25 * weight);
  EXPECT_LT(weight, gate[1]);
  EXPECT_LT(weight, value);
  EXPECT_LT(1.2 * value, query);
  EXPECT_LT(1.2 * value, key);
  // A norm's weight sums products with the stored input, as a product's does: it is not among the smallest.
  EXPECT_GT(norm_weight, 3 * norm_input);
}

}  // namespace
}  // namespace reckon
