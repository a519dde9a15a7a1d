// The contract of runtime/comm as checks that any backend must pass on any number of ranks. Each check runs on every
// rank of `world`; inputs are small integers, so that sums are exact in every type.
#pragma once

#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace reckon {

struct ContractCheck {
  std::string name;
  void (*run)(Communicator& world);
};

const std::vector<ContractCheck>& contract_checks();

}  // namespace reckon
