// Writes one stage's program in the order in which a framework would launch it: compute tasks one after another, and
// communication that blocks them or goes on beside them.
#pragma once

#include <vector>

#include "plan/units.h"
#include "sim/step_graph.h"

namespace reckon {

class TaskWriter {
 public:
  explicit TaskWriter(StageGraph& stage) : stage_(stage) {}

  void set_note(TaskNote note) { note_ = note; }
  /// The next compute task (and communication after it) does not start before `wait`.
  void wait_for(Wait wait) { pending_.push_back(wait); }
  /// A task of the compute stream; nothing if it takes no time.
  void compute(int label, Seconds duration);
  /// Communication that may start as soon as everything so far is complete. Computation goes on meanwhile.
  Wait beside(Stream stream, Port port, int label, Seconds duration);
  /// Communication that computation waits for.
  void blocking(Stream stream, Port port, int label, Seconds duration) {
    wait_for(beside(stream, port, label, duration));
  }
  int compute_tasks() const { return static_cast<int>(stage_.program.streams[kCompute].size()); }

 private:
  Wait add(Stream stream, Task task, const std::vector<Wait>& waits);

  StageGraph& stage_;
  TaskNote note_;
  std::vector<Wait> pending_;
  Wait computed_{kCompute, 0};
};

}  // namespace reckon
