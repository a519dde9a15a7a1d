// Busy and exposed seconds by component, added up.
#pragma once

#include <map>
#include <string>

#include "plan/units.h"

namespace reckon {

class TimeLedger {
 public:
  void add(const std::string& component, Seconds busy, Seconds exposed, double times = 1.0);
  void add(const TimeLedger& other, double times = 1.0);
  Seconds exposed() const;  // sum over components
  struct Entry {
    Seconds busy, exposed;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace reckon
