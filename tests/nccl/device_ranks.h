// Ranks as threads of this process, rank r on device r: the NCCL communicator with rendezvous and all, over the stub or
// over real devices.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace reckon {

/// Runs `body` on every rank with a communicator of device memory; what each rank threw, by rank (null: nothing).
std::vector<std::exception_ptr> run_on_devices(int ranks, const CommunicatorOptions& options,
                                               const std::function<void(Communicator& world)>& body);

/// The text of what a rank threw; empty for null.
std::string text_of(const std::exception_ptr& error);

}  // namespace reckon
