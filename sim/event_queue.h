// Events in order of time; equal times in order of insertion.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/picoseconds.h"

namespace reckon {

struct Event {
  std::int64_t time = 0;  // picoseconds
  std::uint64_t order = 0;
  std::int32_t subject = 0;   // what ends
  std::uint32_t version = 0;  // of the subject when the event was made; the reader drops outdated events
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& next() const { return heap_.front(); }

  void push(Picoseconds time, std::int32_t subject, std::uint32_t version) {
    heap_.push_back({time.value, inserted_++, subject, version});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }

  std::vector<Event> heap_;
  std::uint64_t inserted_ = 0;
};

}  // namespace reckon
