// Compares gradients of one step: activations stored as the plan says against everything kept in compute precision, and
// each stored class alone.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/gradient_check.h"
#include "plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/input/token_stream.h"
#include "runtime/train/parameter_store.h"

namespace reckon {

/// `weights` holds this rank's weights whole (not ZeRO-3's shard). Gradients are kept and summed in fp32 without
/// ZeRO, so that activations alone differ. All ranks call it together; the result is the same on all of them.
GradientCheck check_gradients(const Plan& plan, Communicator& world, const TokenStream& tokens,
                              const ParameterStore& weights, std::int64_t step);

/// The plan with every class kept in compute precision but `stored`, where given: those as the plan says.
Plan keeping_all_but(const Plan& plan, std::optional<ActivationClass> stored);

}  // namespace reckon
