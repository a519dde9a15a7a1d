#include "plan/stage_walk.h"

namespace reckon {

SectionEvents section_events(const OpList& list, const KeptSet& kept, const SectionBytes& whole) {
  SectionEvents events;
  events.forward = forward_events(list, kept);
  events.backward = backward_events(list, kept);
  events.input = input_block(list);
  events.output = output_block(list);
  events.input_gradient = input_gradient_block(list);
  events.output_gradient = output_gradient_block(list);
  events.input_bytes = input_bytes(list);
  events.output_gradient_bytes = output_gradient_bytes(list);
  events.keeps_input = input_is_kept(list, kept);
  events.whole = whole;
  return events;
}

}  // namespace reckon
