// Names of the enumerations that stand in plan, model and hardware files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plan/hardware_spec.h"
#include "plan/model_spec.h"
#include "plan/plan.h"

namespace reckon {

template <class Enum>
struct Choice {
  Enum value;
  std::string_view name;
};

/// All values with their names; the argument only picks the enumeration.
std::span<const Choice<ScheduleKind>> choices(ScheduleKind);
std::span<const Choice<Recompute>> choices(Recompute);
std::span<const Choice<Rows>> choices(Rows);
std::span<const Choice<AttentionScope>> choices(AttentionScope);
std::span<const Choice<Packer>> choices(Packer);
std::span<const Choice<Placement>> choices(Placement);
std::span<const Choice<AttentionKernel>> choices(AttentionKernel);
std::span<const Choice<ActivationKernel>> choices(ActivationKernel);
std::span<const Choice<LossKernel>> choices(LossKernel);
std::span<const Choice<GradientReduce>> choices(GradientReduce);
std::span<const Choice<GradientExchange>> choices(GradientExchange);
std::span<const Choice<OptimizerKind>> choices(OptimizerKind);
std::span<const Choice<LearningRateSchedule>> choices(LearningRateSchedule);
std::span<const Choice<ActivationMethod>> choices(ActivationMethod);
std::span<const Choice<ScaleFormat>> choices(ScaleFormat);
std::span<const Choice<Rounding>> choices(Rounding);
std::span<const Choice<Norm>> choices(Norm);
std::span<const Choice<Activation>> choices(Activation);
std::span<const Choice<Position>> choices(Position);
std::span<const Choice<Provenance>> choices(Provenance);
std::span<const Choice<Pass>> choices(Pass);
std::span<const Choice<Collective>> choices(Collective);

template <class Enum>
concept HasChoices = requires(Enum value) {
  choices(value);
};

template <HasChoices Enum>
std::string_view name_of(Enum value) {
  for (const Choice<Enum>& choice : choices(Enum{})) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

template <HasChoices Enum>
std::optional<Enum> choice_named(std::string_view name) {
  for (const Choice<Enum>& choice : choices(Enum{})) {
    if (choice.name == name) return choice.value;
  }
  return std::nullopt;
}

/// "none, elementwise, selective, full"
template <HasChoices Enum>
std::string list_choices(std::string_view separator = ", ") {
  std::string text;
  for (const Choice<Enum>& choice : choices(Enum{})) {
    if (!text.empty()) text += separator;
    text += choice.name;
  }
  return text;
}

}  // namespace reckon
