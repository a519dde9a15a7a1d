// What a thread needs before it can be a rank: one compute thread, no autograd, its own memory account.
#pragma once

#include <memory>

#include "runtime/train/memory_account.h"
#include "runtime/train/train_device.h"

namespace reckon {

class RankScope {
 public:
  /// Also installs what counts the device's memory, once for the process. Throws RunError: see use_device.
  explicit RankScope(MemoryAccount& account, TrainDevice device = {});
  ~RankScope();
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

}  // namespace reckon
