#include "cost_model/time_ledger.h"

namespace reckon {

void TimeLedger::add(const std::string& component, Seconds busy, Seconds exposed, double times) {
  Entry& entry = entries_[component];
  entry.busy += busy * times;
  entry.exposed += exposed * times;
}

void TimeLedger::add(const TimeLedger& other, double times) {
  for (const auto& [component, entry] : other.entries_) add(component, entry.busy, entry.exposed, times);
}

Seconds TimeLedger::exposed() const {
  Seconds total(0.0);
  for (const auto& [component, entry] : entries_) total += entry.exposed;
  return total;
}

}  // namespace reckon
