#include "runtime/checkpoint/check_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/parameters.h"
#include "runtime/checkpoint/shown_name.h"

namespace reckon {
namespace {

constexpr std::size_t kMostSentences = 20;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void shorten(std::vector<Diagnostic>& diagnostics, const std::string& file) {
  if (diagnostics.size() <= kMostSentences) return;
  const std::size_t left = diagnostics.size() - kMostSentences;
  diagnostics.resize(kMostSentences);
  diagnostics.push_back({fmt::format("and {} more tensors like these", left), file, 0, 0, {}});
}

}  // namespace

TensorShapes parameter_shapes(const ModelSpec& model) {
  TensorShapes shapes;
  const auto add = [&](const std::vector<Parameter>& section) {
    for (const Parameter& parameter : section) shapes[parameter.name] = parameter.shape;
  };
  add(embedding_parameters(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer) add(layer_parameters(model, layer));
  add(head_parameters(model));
  return shapes;
}

std::vector<Diagnostic> compare_shapes(const TensorShapes& needed, const TensorShapes& found, const std::string& file) {
  std::vector<Diagnostic> wrong;
  for (const auto& [name, shape] : needed) {
    const auto place = found.find(name);
    if (place == found.end()) wrong.push_back({fmt::format("lacks {} {}", name, shape_text(shape)), file, 0, 0, {}});
    else if (place->second != shape)
      wrong.push_back(
          {fmt::format("has {} as {}, the model needs {}", name, shape_text(place->second), shape_text(shape)),
           file,
           0,
           0,
           {}});
  }
  for (const auto& [name, shape] : found)
    if (!needed.contains(name))
      wrong.push_back({fmt::format("has {} {}, which the model does not know", shown_name(name), shape_text(shape)),
                       file,
                       0,
                       0,
                       {}});
  shorten(wrong, file);
  return wrong;
}

void require_resumable(const CheckpointReader& checkpoint, const Plan& plan) {
  const std::string file = checkpoint.folder().string();
  std::vector<Diagnostic> wrong = compare_shapes(parameter_shapes(plan.model), checkpoint.shapes(), file);
  if (plan.optimizer.kind == OptimizerKind::adamw && !checkpoint.holds("first_moment"))
    wrong.push_back(
        {"holds no moments, so AdamW cannot go on from it; optimizer.kind: sgd can", file, 0, 0, "optimizer.kind"});
  const std::int64_t step = checkpoint.manifest().step;
  if (step >= plan.train.steps)
    wrong.push_back({fmt::format("was taken after step {} and train.steps is {}: nothing is left to train; --steps "
                                 "takes a larger number",
                                 step, plan.train.steps),
                     file, 0, 0, "train.steps"});
  if (!wrong.empty()) throw ConfigError(std::move(wrong));
}

}  // namespace reckon
