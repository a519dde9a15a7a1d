#include "cost_model/section_memory.h"

namespace reckon {

namespace {

MemoryMoment highest_moment(const std::vector<MemoryEvent>& events, MemoryMoment now) {
  MemoryMoment highest = now;
  for (const MemoryEvent& event : events) {
    (event.kept ? now.kept : now.transient) += event.allocates ? event.bytes : -event.bytes;
    raise(highest, now);
  }
  return highest;
}

}  // namespace

void raise(MemoryMoment& highest, const MemoryMoment& moment) {
  const Bytes now = moment.total(), most = highest.total();
  if (now > most || (now == most && moment.kept > highest.kept)) highest = moment;
}

SectionMemory section_memory(const OpList& list, const KeptSet& kept) {
  const Bytes input = input_bytes(list);
  const bool keeps_input = input_is_kept(list, kept);
  SectionMemory memory;
  memory.kept = kept.bytes();
  memory.forward = highest_moment(forward_events(list, kept),
                                  keeps_input ? MemoryMoment{input, Bytes(0)} : MemoryMoment{Bytes(0), input});
  memory.backward = highest_moment(backward_events(list, kept), {memory.kept, output_gradient_bytes(list)});
  return memory;
}

}  // namespace reckon
