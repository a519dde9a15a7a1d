// What a thread needs before it can be a rank: one compute thread, no autograd, its own memory account.
#pragma once

#include <memory>

#include "runtime/train/memory_account.h"

namespace reckon {

class RankScope {
 public:
  /// Also installs the counting allocator, once for the process.
  explicit RankScope(MemoryAccount& account);
  ~RankScope();
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

}  // namespace reckon
