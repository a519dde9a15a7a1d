#include "plan/memory_events.h"

#include <algorithm>
#include <set>

#include "plan/memory_blocks.h"

namespace reckon {

int input_block(const OpList& list) {
  return block_number(list, BlockKind::value, 0);
}

int input_gradient_block(const OpList& list) {
  KeptSet everything;
  std::set<int> names;
  for (const Op& op : list.ops)
    for (const int tensor : op.saved)
      if (const int name = storage_name(list, tensor); names.insert(name).second)
        everything.kept.push_back({name, {}, held_bytes(list, name), false, 0});
  for (KeptTensor& kept : everything.kept) kept.needed_until = -1;  // nothing is freed: only gradients matter here
  EventRecorder recorder(list);
  return record_backward(list, everything, recorder);
}

int output_block(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? -1 : block_number(list, BlockKind::value, root_of(list, tensor));
}

int output_gradient_block(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? -1 : block_number(list, BlockKind::gradient, root_of(list, tensor));
}

Bytes input_bytes(const OpList& list) {
  return held_bytes(list, 0);
}

bool input_is_kept(const OpList& list, const KeptSet& kept) {
  return KeptView(list, kept).keeps_whole(list, 0);
}

Bytes output_gradient_bytes(const OpList& list) {
  const int tensor = output_tensor(list);
  return tensor < 0 ? Bytes(0) : held_bytes(list, root_of(list, tensor));
}

std::vector<MemoryEvent> forward_events(const OpList& list, const KeptSet& kept) {
  EventRecorder recorder(list);
  recorder.adopt(input_block(list), input_bytes(list), input_is_kept(list, kept));
  const int output = output_tensor(list);
  record_forward(list, kept, BlockKind::value, output < 0 ? -1 : root_of(list, output), recorder);
  return recorder.take();
}

std::vector<MemoryEvent> backward_events(const OpList& list, const KeptSet& kept) {
  EventRecorder recorder(list);
  record_backward(list, kept, recorder);
  return recorder.take();
}

Bytes highest_bytes(const std::vector<MemoryEvent>& events, Bytes before) {
  Bytes now = before, highest = before;
  for (const MemoryEvent& event : events) {
    now += event.allocates ? event.bytes : -event.bytes;
    highest = std::max(highest, now);
  }
  return highest;
}

}  // namespace reckon
