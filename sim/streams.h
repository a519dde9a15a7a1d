// The streams, ports and inboxes that a rank of a training step uses.
#pragma once

#include <string_view>

#include "plan/collective.h"
#include "sim/program.h"

namespace reckon {

/// One compute stream and a communication stream for each kind of group, as frameworks set them up.
enum Stream : int {
  kCompute,
  kTensor,        // tensor-parallel collectives
  kContext,       // Ulysses all-to-all and ring exchange
  kExpert,        // dispatch and combine
  kStates,        // parameters from and gradients to the ranks that hold the same weights, one after another
  kSendForward,   // activations to the next stage
  kSendBackward,  // gradients to the previous stage
  kWorld,         // what joins stages: tied tables, the gradient norm
};
static_assert(kWorld + 1 == kStreams);
std::string_view name_of(Stream stream);

/// A rank's communicators.
enum Port : int {
  kTensorPort,
  kUlyssesPort,
  kRingPort,
  kExpertPort,
  kGatherPort,
  kReducePort,
  kSendForwardPort,
  kSendBackwardPort,
  kEmbeddingPort,
  kWorldPort,
  kPorts
};

/// Inboxes; a Wait on them names kStreams + inbox.
enum Inbox : int { kActivations, kGradients };

/// Where a collective of an op list runs. Throws std::logic_error for groups that no op uses.
Stream stream_of(Group group);
Port port_of(Group group);

}  // namespace reckon
