#include "runtime/train/rank_scope.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "runtime/train/counting_allocator.h"
#include "runtime/train/device/device_rank.h"

namespace reckon {

struct RankScope::Guards {
  AccountScope account;
  c10::InferenceMode inference;  // no version counters, no graph
};

RankScope::RankScope(MemoryAccount& account, TrainDevice device) {
  if (device.is_cpu()) install_counting_allocator();
  use_device(device);
  at::set_num_threads(1);
  guards_.reset(new Guards{AccountScope(account), c10::InferenceMode()});
}

RankScope::~RankScope() = default;

}  // namespace reckon
