// The model written the plain way on libtorch's autograd, as the expected value of the runtime's hand-written passes.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "plan/model_spec.h"

namespace reckon::testing {

class ReferenceModel {
 public:
  /// `weights` by Hugging Face name; copied as leaves that collect gradients.
  ReferenceModel(ModelSpec model, const std::map<std::string, at::Tensor>& weights) : model_(std::move(model)) {
    for (const auto& [name, tensor] : weights) weights_[name] = tensor.clone().requires_grad_(true);
  }

  /// Sum of the cross-entropies of tokens and targets [rows, length] (int64).
  at::Tensor loss_sum(const at::Tensor& tokens, const at::Tensor& targets) const {
    at::Tensor x = at::embedding(w("model.embed_tokens.weight"), tokens);
    if (model_.position == Position::learned)
      x = x + w("model.embed_positions.weight")
                  .slice(0, model_.position_offset, model_.position_offset + tokens.size(1))
                  .unsqueeze(0);
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      x = x + attention(norm(x, prefix + "input_layernorm"), prefix + "self_attn.");
      x = x + ffn(norm(x, prefix + "post_attention_layernorm"), prefix + "mlp.");
    }
    const std::string head = weights_.contains("lm_head.weight") ? "lm_head.weight" : "model.embed_tokens.weight";
    const at::Tensor logits = at::matmul(norm(x, "model.norm"), w(head).t());
    return at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {}, at::Reduction::Sum);
  }

  at::Tensor gradient(const std::string& name) const { return w(name).grad(); }

 private:
  at::Tensor w(const std::string& name) const { return weights_.at(name); }

  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const at::Tensor y = at::matmul(x, w(name + ".weight").t());
    return weights_.contains(name + ".bias") ? y + w(name + ".bias") : y;
  }

  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    if (model_.norm == Norm::layer_norm) {
      const auto bias = weights_.contains(name + ".bias") ? w(name + ".bias") : at::Tensor();
      return at::layer_norm(x, {model_.hidden}, w(name + ".weight"), bias, model_.norm_epsilon);
    }
    return x * (x.square().mean(-1, true) + model_.norm_epsilon).rsqrt() * w(name + ".weight");
  }

  at::Tensor head_norm(const at::Tensor& x, const std::string& name) const {
    return x * (x.square().mean(-1, true) + model_.norm_epsilon).rsqrt() * w(name + ".weight");
  }

  at::Tensor rotate(const at::Tensor& x) const {  // [rows, heads, length, dim]
    const std::int64_t dim = model_.head_dim;
    const at::Tensor frequency =
        at::pow(model_.rope_theta, -at::arange(0, dim, 2, at::kDouble) / static_cast<double>(dim));
    const at::Tensor angle = at::outer(at::arange(x.size(2), at::kDouble), frequency).repeat({1, 2});
    const at::Tensor turned = at::cat({-x.slice(3, dim / 2), x.slice(3, 0, dim / 2)}, 3);
    return x * angle.cos().to(x.scalar_type()) + turned * angle.sin().to(x.scalar_type());
  }

  at::Tensor attention(const at::Tensor& x, const std::string& prefix) const {
    const std::int64_t dim = model_.head_dim, length = x.size(1);
    const auto by_head = [&](const std::string& name) {
      return linear(x, prefix + name).unflatten(-1, {-1, dim}).transpose(1, 2);
    };
    at::Tensor q = by_head("q_proj"), k = by_head("k_proj"), v = by_head("v_proj");
    if (model_.qk_norm) {
      q = head_norm(q, prefix + "q_norm");
      k = head_norm(k, prefix + "k_norm");
    }
    if (model_.position == Position::rope) {
      q = rotate(q);
      k = rotate(k);
    }
    const std::int64_t repeat = model_.heads / model_.kv_heads;
    k = k.repeat_interleave(repeat, 1);
    v = v.repeat_interleave(repeat, 1);
    const at::Tensor mask = at::full({length, length}, -1e30, x.options()).triu(1);
    const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(dim)) + mask;
    return linear(at::matmul(scores.softmax(-1), v).transpose(1, 2).flatten(2), prefix + "o_proj");
  }

  at::Tensor activate(const at::Tensor& x) const {
    switch (model_.activation) {
      case Activation::silu: return at::silu(x);
      case Activation::gelu: return at::gelu(x, "tanh");
      case Activation::relu: return at::relu(x);
      case Activation::squared_relu: return at::relu(x).square();
    }
    return x;
  }

  at::Tensor ffn(const at::Tensor& x, const std::string& prefix) const {
    const at::Tensor up = linear(x, prefix + "up_proj");
    const at::Tensor hidden = model_.gated_ffn ? activate(linear(x, prefix + "gate_proj")) * up : activate(up);
    return linear(hidden, prefix + "down_proj");
  }

  ModelSpec model_;
  std::map<std::string, at::Tensor> weights_;
};

}  // namespace reckon::testing
