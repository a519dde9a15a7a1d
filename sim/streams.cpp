#include "sim/streams.h"

#include <stdexcept>

namespace reckon {

std::string_view name_of(Stream stream) {
  switch (stream) {
    case kCompute: return "compute";
    case kTensor: return "tensor";
    case kContext: return "context";
    case kExpert: return "expert";
    case kStates: return "parameters and gradients";
    case kSendForward: return "send forward";
    case kSendBackward: return "send backward";
    case kWorld: return "world";
  }
  throw std::logic_error("name_of: unknown stream");
}

Stream stream_of(Group group) {
  switch (group) {
    case Group::tensor: return kTensor;
    case Group::ulysses:
    case Group::ring: return kContext;
    case Group::expert: return kExpert;
    default: throw std::logic_error("an op's collective runs over a tensor, ulysses, ring or expert group");
  }
}

Port port_of(Group group) {
  switch (group) {
    case Group::tensor: return kTensorPort;
    case Group::ulysses: return kUlyssesPort;
    case Group::ring: return kRingPort;
    case Group::expert: return kExpertPort;
    default: throw std::logic_error("an op's collective runs over a tensor, ulysses, ring or expert group");
  }
}

}  // namespace reckon
