#include "cost_model/gradient_error.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "plan/stage_sections.h"

namespace reckon {

namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Error of what is read under a storage name, relative to that of a tensor stored in fp4_e2m1.
class Coarseness {
 public:
  Coarseness(const OpList& list, const KeptSet& kept) : list_(list), known_(list.tensors.size(), kUnknown) {
    for (const KeptTensor& tensor : kept.kept)
      known_[at(tensor.tensor)] =
          tensor.encoded ? relative_error(tensor.storage.format) / relative_error(NumberFormat::fp4_e2m1) : 0.0;
  }

  double of(int name, std::size_t before) {
    double& known = known_[at(name)];
    if (known != kUnknown) return known;
    double coarsest = 0.0;
    for (std::size_t op = before; op-- > 0;) {
      const std::vector<int>& outputs = list_.ops[op].outputs;
      if (std::none_of(outputs.begin(), outputs.end(), [&](int t) { return storage_name(list_, t) == name; })) continue;
      for (const int input : list_.ops[op].inputs) coarsest = std::max(coarsest, of(storage_name(list_, input), op));
      break;
    }
    return known_[at(name)] = coarsest;
  }

 private:
  static constexpr double kUnknown = -1.0;
  const OpList& list_;
  std::vector<double> known_;
};

}  // namespace

double class_error(const Plan& plan, ActivationClass activation_class) {
  const auto given = plan.activations.errors.find(activation_class);
  if (given != plan.activations.errors.end()) return given->second;
  constexpr double kNorm = 0.003, kProduct = 0.026, kSilu = 0.051, kValue = 0.059, kQuery = 0.14, kKey = 0.15;
  switch (activation_class) {
    case ActivationClass::norm_input: return kNorm;
    case ActivationClass::query: return kQuery;
    case ActivationClass::key: return kKey;
    case ActivationClass::value: return kValue;
    // Not published: enters the gradients of queries and keys through the softmax's row sums, hence taken as theirs.
    case ActivationClass::attention_output:
    case ActivationClass::attention_scores: return kQuery;
    case ActivationClass::gate:
    case ActivationClass::up: return kSilu / std::sqrt(2.0);  // published for both together
    case ActivationClass::ffn_hidden: return kSilu;
    default: return kProduct;  // inputs of products
  }
}

double squared_gradient_error(const Plan& plan, const OpList& list, const KeptSet& kept) {
  Coarseness coarseness(list, kept);
  std::set<int> read;
  double sum = 0.0;
  for (const Op& op : list.ops)
    for (const int tensor : op.saved) {
      const auto& policies = policy_classes();
      const ActivationClass one = list.tensors[at(tensor)].kept_as;
      if (std::find(policies.begin(), policies.end(), one) == policies.end() || !read.insert(tensor).second) continue;
      const double error = class_error(plan, one) * coarseness.of(storage_name(list, tensor), list.ops.size());
      sum += error * error;
    }
  return sum;
}

double predicted_gradient_error(const Plan& resolved) {
  double sum = 0.0;
  for (std::int64_t stage = 0; stage < resolved.parallel.pipeline; ++stage)
    for (const ChunkSections& chunk : stage_sections(resolved, stage))
      for (const SectionRun& run : runs_of(chunk)) {
        const OpList list = section_ops(resolved, run.section.kind, single_document_work(resolved));
        const Recompute mode = run.section.recomputed ? resolved.activations.recompute : Recompute::none;
        const KeptSet kept = kept_tensors(resolved, list, mode, static_cast<int>(stage));
        sum += static_cast<double>(run.count) * squared_gradient_error(resolved, list, kept);
      }
  return std::sqrt(sum / static_cast<double>(resolved.model.layers));
}

}  // namespace reckon
