#include "cost_model/plan_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plan/caching_allocator.h"
#include "plan/layer_ops.h"
#include "plan/number_format.h"
#include "plan/parameter_layout.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

constexpr double kNear = 0.02;
constexpr std::int64_t kSubGroup = 1000000000;  // DeepSpeed's default sub_group_size, elements

class Collector {
 public:
  void add(std::string name, std::string where, std::string form, std::int64_t bytes, bool whole) {
    if (bytes <= 0 || !seen_.insert(fmt::format("{}|{}|{}", name, form, bytes)).second) return;
    tensors_.push_back({std::move(name), std::move(where), std::move(form), Bytes(bytes), whole});
  }
  std::vector<SizedTensor> take() { return std::move(tensors_); }

 private:
  std::vector<SizedTensor> tensors_;
  std::set<std::string> seen_;
};

/// The same training on one rank for each replica: tensors as they are before anything splits them.
Plan undivided(Plan plan) {
  plan.parallel.tensor = plan.parallel.ulysses = plan.parallel.ring = plan.parallel.expert = 1;
  plan.parallel.sequence = false;
  plan.parallel.zero_group = plan.parallel.data;
  plan.documents.placement = Placement::contiguous;
  return plan;
}

std::vector<std::pair<Section, const char*>> sections_of(const ModelSpec& model) {
  std::vector<std::pair<Section, const char*>> sections = {{Section::embedding, "embedding"}, {Section::head, "head"}};
  if (has_section(model, Section::dense_layer)) sections.emplace_back(Section::dense_layer, "a layer");
  if (model.is_moe()) sections.emplace_back(Section::moe_layer, "a layer with experts");
  return sections;
}

void add_activations(Collector& found, const Plan& plan, bool whole) {
  const AttentionWork work = single_document_work(plan);
  for (const auto& [section, called] : sections_of(plan.model)) {
    const std::string where = fmt::format("activations of {}, one micro-batch", called);
    const OpList list = section_ops(plan, section, work);
    for (const Tensor& tensor : list.tensors) {
      if (tensor.storage_of >= 0) continue;
      const std::string name(tensor.name);
      found.add(name, where, std::string(name_of(tensor.format)), tensor.bytes().value, whole);
      const bool logits = name == "logits";
      if (payload_bits(tensor.format) == 16)
        found.add(name, where, logits ? "FP32 copy (loss)" : "FP32 copy", 4 * tensor.elements, whole);
    }
    for (const Op& op : list.ops) {
      found.add(fmt::format("workspace of {}", op.name), where, "forward", op.forward_workspace.value, whole);
      found.add(fmt::format("workspace of {}", op.name), where, "backward", op.backward_workspace.value, whole);
    }
  }
}

/// "model.layers.3.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight"; experts likewise.
std::string for_all_layers(const std::string& name) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (text.empty() ? "" : ".") + (number ? "*" : part);
    at = end + 1;
  }
  return text;
}

void add_weight(Collector& found, const Plan& plan, const std::string& name, std::int64_t elements, bool whole) {
  const std::string shown = for_all_layers(name), where = "weights";
  found.add(shown, where, std::string(name_of(tensor_format(plan))), weight_bytes(plan, elements).value, whole);
  found.add(shown, where, "gradient", gradient_bytes(plan, elements).value, whole);
  found.add(shown, where, "FP32 (master, moment or gradient)", 4 * elements, whole);
}

void add_flat(Collector& found, const Plan& plan, const ParameterLayout& layout, std::int64_t stage, const char* what) {
  if (layout.elements == 0) return;
  const std::string where = fmt::format("states of stage {}", stage), all = fmt::format("all {}", what);
  found.add(all, where, std::string(name_of(tensor_format(plan))), weight_bytes(plan, layout.padded_elements).value,
            false);
  found.add(all, where, "gradients", gradient_bytes(plan, layout.padded_elements).value, false);
  found.add(all, where, "FP32 (master or one moment)", 4 * layout.padded_elements, false);
  if (layout.shards <= 1) return;
  const std::string shard = fmt::format("one shard of {} of {}", layout.shards, all);
  found.add(shard, where, std::string(name_of(tensor_format(plan))), weight_bytes(plan, layout.shard_elements).value,
            false);
  found.add(shard, where, "gradients", gradient_bytes(plan, layout.shard_elements).value, false);
  found.add(shard, where, "FP32 (master or one moment)", 4 * layout.shard_elements, false);
  if (layout.shard_elements > kSubGroup)
    found.add("one sub-group of 1e9 elements (DeepSpeed's sub_group_size)", where, "FP32", 4 * kSubGroup, false);
}

void add_states(Collector& found, const Plan& plan) {
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    Coordinates at;
    at.pipeline = stage;
    const ParameterLayout layout = parameter_layout(plan, at), experts = expert_parameter_layout(plan, at);
    for (const ParameterLayout* one : {&layout, &experts})
      for (const LocalParameter& weight : one->parameters) {
        add_weight(found, plan, weight.whole.name, weight.elements(), false);
        if (weight.elements() != weight.whole.elements())
          add_weight(found, plan, weight.whole.name, weight.whole.elements(), true);
      }
    add_flat(found, plan, layout, stage, "weights");
    add_flat(found, plan, experts, stage, "routed experts");
  }
  const SectionElements sections = section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
  for (const auto& [elements, called] : {std::pair{sections.embedding, "the embedding"},
                                         {sections.dense_layer, "one layer"},
                                         {sections.moe_layer + sections.layer_experts, "one layer with experts"},
                                         {sections.head, "the head"}}) {
    found.add(fmt::format("all weights of {}, gathered", called), "ZeRO-3 and FSDP",
              std::string(name_of(tensor_format(plan))), weight_bytes(plan, elements).value, false);
    found.add(fmt::format("all gradients of {}", called), "ZeRO-2, 3 and FSDP",
              std::string(name_of(plan.gradients.stored)), gradient_bytes(plan, elements).value, false);
  }
  found.add("one bucket of the gradient reduction", "communication", std::string(name_of(plan.gradients.wire)),
            plan.gradients.bucket.value, false);
}

/// The three that are closest by ratio.
std::vector<SizeMatch> nearest(const std::vector<SizedTensor>& tensors, Bytes asked) {
  std::vector<SizeMatch> all;
  for (const SizedTensor& tensor : tensors) all.push_back({tensor, false, tensor.bytes / asked - 1});
  const auto off = [](const SizeMatch& match) { return std::abs(std::log1p(match.error)); };
  std::stable_sort(all.begin(), all.end(), [&](const SizeMatch& a, const SizeMatch& b) { return off(a) < off(b); });
  all.resize(std::min<std::size_t>(all.size(), 3));
  return all;
}

}  // namespace

std::vector<SizedTensor> plan_tensors(const Plan& resolved) {
  Collector found;
  add_activations(found, resolved, false);
  add_states(found, resolved);
  add_activations(found, undivided(resolved), true);
  return found.take();
}

std::vector<SizeMatch> tensors_of_size(const std::vector<SizedTensor>& tensors, const OutOfMemoryLine& line) {
  std::vector<SizeMatch> matches;
  const auto distance = [&](Bytes bytes) { return std::abs(static_cast<double>((bytes - line.asked).value)); };
  const double tolerance = static_cast<double>(line.tolerance.value), asked = static_cast<double>(line.asked.value);
  for (const SizedTensor& tensor : tensors) {
    const double error = static_cast<double>((tensor.bytes - line.asked).value) / asked;
    const Bytes segment = CachingAllocator::segment_size(CachingAllocator::rounded(tensor.bytes));
    if (distance(tensor.bytes) <= tolerance) matches.push_back({tensor, false, 0});
    else if (distance(segment) <= tolerance && tensor.bytes.value > (1 << 20)) matches.push_back({tensor, true, error});
    else if (std::abs(error) <= kNear) matches.push_back({tensor, false, error});
  }
  if (matches.empty()) matches = nearest(tensors, line.asked);
  const auto order = [](const SizeMatch& match) {
    const int class_ = match.error == 0 ? 0 : match.rounded ? 1 : 2;
    return std::tuple(class_, match.tensor.whole, std::abs(match.error));
  };
  std::stable_sort(matches.begin(), matches.end(),
                   [&](const SizeMatch& a, const SizeMatch& b) { return order(a) < order(b); });
  return matches;
}

}  // namespace reckon
