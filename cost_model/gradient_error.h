// Predicted error of gradients when activations are stored in fewer bits: docs/agoq.md, "Error model".
#pragma once

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"
#include "plan/plan.h"

namespace reckon {

/// Normalized L2 error of the gradient that reads a class stored in fp4_e2m1, blocks of 128: activations.errors, else
/// as published for AGoQ (arXiv 2605.00539, table 13).
double class_error(const Plan& plan, ActivationClass activation_class);

/// Sum of squared errors over what the backward pass of one section reads. A tensor that is recomputed has the error of
/// the coarsest format it is recomputed from.
double squared_gradient_error(const Plan& plan, const OpList& list, const KeptSet& kept);

/// Root of the mean over layers, embedding and head counted with them. The plan is resolved.
double predicted_gradient_error(const Plan& resolved);

}  // namespace reckon
