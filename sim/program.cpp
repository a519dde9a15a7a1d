#include "sim/program.h"

#include <stdexcept>

namespace reckon {

Wait Program::add(int stream, Task task, const std::vector<Wait>& waits_for) {
  task.first_wait = static_cast<std::uint32_t>(waits.size());
  for (const Wait& wait : waits_for) {
    if (wait.count == 0 || wait.counter == stream) continue;  // a stream is in order anyway
    if (wait.counter < kStreams) {
      auto& other = streams[static_cast<std::size_t>(wait.counter)];
      if (wait.count > static_cast<std::int32_t>(other.size()))
        throw std::logic_error("Program::add: a task waits for one that is not in the program yet");
      auto& awaited = other[static_cast<std::size_t>(wait.count - 1)];
      awaited.wakes = static_cast<std::uint16_t>(awaited.wakes | (1u << stream));
    }
    waits.push_back(wait);
    ++task.waits;
  }
  auto& list = streams[static_cast<std::size_t>(stream)];
  list.push_back(task);
  return {stream, static_cast<std::int32_t>(list.size())};
}

std::int64_t Program::tasks() const {
  std::int64_t sum = 0;
  for (const auto& stream : streams) sum += static_cast<std::int64_t>(stream.size());
  return sum;
}

}  // namespace reckon
