// Which changes of a plan make its gradients other ones, and what a user is told of them.
#pragma once

#include <string_view>

namespace reckon {

/// `overrides`: one or several, "activations.stored=int4 activations.bits_by_stage=auto".
constexpr bool changes_gradients(std::string_view overrides) {
  return overrides.find("activations.stored=") != std::string_view::npos;
}

inline constexpr std::string_view kGradientsChange =
    "fewer bits change the gradients: docs/agoq.md says by how much, activations.method=optimal weighs it against time";

}  // namespace reckon
