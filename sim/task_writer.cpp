#include "sim/task_writer.h"

namespace reckon {

Wait TaskWriter::add(Stream stream, Task task, const std::vector<Wait>& waits) {
  stage_.notes[stream].push_back(note_);
  return stage_.program.add(stream, task, waits);
}

void TaskWriter::compute(int label, Seconds duration) {
  Task task;
  task.duration = to_picoseconds(duration);
  if (task.duration.value <= 0) return;
  task.label = label;
  computed_ = add(kCompute, task, pending_);
  pending_.clear();
}

Wait TaskWriter::beside(Stream stream, Port port, int label, Seconds duration) {
  Task task;
  task.kind = TaskKind::transfer;
  task.duration = to_picoseconds(duration);
  task.label = label;
  task.port = static_cast<std::uint8_t>(port);
  std::vector<Wait> waits = pending_;
  waits.push_back(computed_);
  return add(stream, task, waits);
}

}  // namespace reckon
