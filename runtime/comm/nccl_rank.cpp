#include "runtime/comm/nccl_rank.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "runtime/comm/board.h"

namespace reckon {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};
constexpr std::chrono::milliseconds kBetweenPolls{1};
constexpr std::int64_t kAbortPatience = 5000000000;  // nanoseconds

CallPlace on_device(int rank, int device) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice", {rank, device});
  return {rank, device};
}

}  // namespace

NcclRank::NcclRank(int rank, int device, std::shared_ptr<Rendezvous> rendezvous, CommunicatorOptions options)
    : rank_(rank),
      device_(device),
      rendezvous_(std::move(rendezvous)),
      options_(std::move(options)),
      collectives_(on_device(rank, device)),
      messages_({rank, device}),
      watchdog_(&NcclRank::watch, this) {}

NcclRank::~NcclRank() {
  stop_ = true;
  watchdog_.join();
  if (rendezvous_->failed()) abort_all();
  else destroy_all();
  for (void* memory : allocated_) cudaFree(memory);  // unchecked: nothing can be done about it here
}

LaneGroup& NcclRank::add_group(const std::string& name) {
  const std::lock_guard lock(issuing_);
  groups_.push_back(std::make_unique<LaneGroup>());
  groups_.back()->group = name;
  return *groups_.back();
}

LaneGroup* NcclRank::split_group(LaneGroup& parent, const std::string& name, int color, int key, ncclConfig_t config) {
  LaneGroup& child = add_group(name);
  {
    const std::lock_guard lock(issuing_);
    require_running(parent);
    check_nccl(ncclCommSplit(parent.handle, color, key, &child.handle, &config), "ncclCommSplit", place(),
               parent.handle);
  }
  await_ready(parent, "ncclCommSplit");  // its state covers the split
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  await_ready(child, "ncclCommSplit");
  return &child;
}

void NcclRank::require_running(const LaneGroup& group) const {
  rendezvous_->check();
  if (group.aborted) throw RunError(fmt::format("group {} has been aborted", group.group));
}

void NcclRank::await_ready(LaneGroup& group, const char* call) {
  const std::int64_t until = monotonic_nanoseconds() + static_cast<std::int64_t>(options_.timeout.value * 1e9);
  while (true) {
    {
      const std::lock_guard lock(issuing_);
      require_running(group);
      ncclResult_t state = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(group.handle, &state), "ncclCommGetAsyncError", place(), group.handle);
      check_nccl(state, call, place(), group.handle);
      if (state == ncclSuccess) return;
    }
    if (monotonic_nanoseconds() > until)
      throw RunError(fmt::format("{} for group {}{} has not ended within {:g} s: {}", call, group.group,
                                 describe(place()), options_.timeout.value, nccl_text(ncclInProgress, nullptr)),
                     ExitCode::timeout);
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

void NcclRank::settle(LaneGroup& group, const char* call) {
  const std::int64_t until = monotonic_nanoseconds() + static_cast<std::int64_t>(options_.timeout.value * 1e9);
  while (true) {
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(group.handle, &state), "ncclCommGetAsyncError", place(), group.handle);
    check_nccl(state, call, place(), group.handle);
    if (state == ncclSuccess) return;
    require_running(group);
    if (monotonic_nanoseconds() > until)
      throw RunError(fmt::format("{} of group {}{} was not taken in within {:g} s", call, group.group,
                                 describe(place()), options_.timeout.value),
                     ExitCode::timeout);
    sched_yield();
  }
}

void NcclRank::await(const DeviceLane& lane, const EventOwner& event, const std::string& what) {
  const std::int64_t until = monotonic_nanoseconds() + static_cast<std::int64_t>(options_.timeout.value * 1e9);
  while (!lane.happened(event)) {
    check();
    if (monotonic_nanoseconds() > until)
      throw RunError(fmt::format("{}{} has not ended within {:g} s", what, describe(place()), options_.timeout.value),
                     ExitCode::timeout);
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

void NcclRank::check() {
  if (!rendezvous_->failed()) return;
  const std::int64_t until = monotonic_nanoseconds() + kAbortPatience;
  while (!aborted_ && monotonic_nanoseconds() < until) std::this_thread::sleep_for(kBetweenPolls);
  rendezvous_->check();
}

void NcclRank::watch() {
  try {
    check_cuda(cudaSetDevice(device_), "cudaSetDevice", place());  // the current device belongs to a thread
    while (!stop_) {
      if (rendezvous_->failed() && !aborted_) abort_all();
      if (!aborted_) look_for_errors();
      std::this_thread::sleep_for(kBetweenLooks);
    }
  } catch (const std::exception& error) {  // on this thread it would end the process
    rendezvous_->fail(error.what());
    abort_all();
  }
}

void NcclRank::look_for_errors() {
  std::string failure;
  {
    const std::unique_lock lock(issuing_, std::try_to_lock);
    if (!lock.owns_lock()) return;  // the caller is issuing, and sees errors itself
    for (const auto& group : groups_) {
      if (group->handle == nullptr || group->aborted) continue;
      ncclResult_t state = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(group->handle, &state), "ncclCommGetAsyncError", place(), group->handle);
      if (state == ncclSuccess || state == ncclInProgress) continue;
      const std::string call = group->last.number == 0 ? "before its first call"
                                                       : fmt::format("last call {}: {}", group->last.number,
                                                                     describe(group->last.operation));
      failure = fmt::format("NCCL reports an error{} in group {} ({}): {}", describe(place()), group->group, call,
                            nccl_text(state, group->handle));
      break;
    }
  }
  if (!failure.empty()) rendezvous_->fail(failure);
}

void NcclRank::abort_all() {
  const std::lock_guard lock(issuing_);
  for (const auto& group : groups_) {
    if (group->handle != nullptr && !group->aborted) ncclCommAbort(group->handle);  // unchecked: it has failed
    group->aborted = true;
  }
  aborted_ = true;
}

void NcclRank::destroy_all() {
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {  // children before parents
    if ((*group)->handle == nullptr) continue;
    ncclResult_t state = ncclCommFinalize((*group)->handle);  // unchecked: the run has succeeded, its results stand
    const std::int64_t until = monotonic_nanoseconds() + kAbortPatience;
    while ((state == ncclSuccess || state == ncclInProgress) && monotonic_nanoseconds() < until) {
      ncclCommGetAsyncError((*group)->handle, &state);  // unchecked: as above
      if (state == ncclSuccess) break;
      std::this_thread::sleep_for(kBetweenPolls);
    }
    if (state == ncclSuccess) ncclCommDestroy((*group)->handle);  // unchecked: as above
    else ncclCommAbort((*group)->handle);                         // unchecked: as above
  }
}

std::byte* NcclRank::allocate(std::int64_t bytes) {
  void* fresh = nullptr;
  check_cuda(cudaMalloc(&fresh, static_cast<std::size_t>(bytes)), "cudaMalloc", place());
  allocated_.push_back(fresh);
  return static_cast<std::byte*>(fresh);
}

// What is outgrown stays until the end, because work in flight uses it; doubling keeps that below the final size.
std::byte* NcclRank::scratch(std::int64_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  scratch_bytes_ = std::max(bytes, 2 * scratch_bytes_);
  scratch_ = allocate(scratch_bytes_);
  return scratch_;
}

std::int64_t NcclRank::free_memory() const {
  std::size_t free = 0, all = 0;
  check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo", place());
  return static_cast<std::int64_t>(free);
}

}  // namespace reckon
