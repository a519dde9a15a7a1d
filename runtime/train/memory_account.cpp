#include "runtime/train/memory_account.h"

#include <fmt/format.h>

#include <numeric>

#include "plan/errors.h"

namespace reckon {
namespace {

thread_local MemoryAccount* current_account = nullptr;
thread_local MemoryCategory current_category = MemoryCategory::transient;

/// Blocks allocated outside any rank (static initialisers, tests) are booked here.
MemoryAccount& unassigned() {
  static MemoryAccount* account = new MemoryAccount;  // never destroyed: blocks may be freed at exit
  return *account;
}

std::int64_t& at(BytesByCategory& bytes, MemoryCategory category) {
  return bytes[static_cast<std::size_t>(category)];
}

std::string breakdown(const BytesByCategory& bytes) {
  std::string text;
  for (std::size_t i = 0; i < kMemoryCategories; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name_of(static_cast<MemoryCategory>(i)), bytes[i]);
  return text;
}

}  // namespace

void MemoryAccount::book(MemoryCategory category, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (limit_ > 0 && total_ + bytes > limit_)
    throw RunError(
        fmt::format("rank {} does not fit into memory.limit: {} of {} bytes on top of {} in use exceed the limit of {} "
                    "bytes (in use: {})",
                    rank_, name_of(category), bytes, total_, limit_, breakdown(in_use_)),
        ExitCode::does_not_fit);
  at(in_use_, category) += bytes;
  total_ += bytes;
  if (total_ > peak_) {
    peak_ = total_;
    at_peak_ = in_use_;
  }
}

void MemoryAccount::release(MemoryCategory category, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  at(in_use_, category) -= bytes;
  total_ -= bytes;
}

void MemoryAccount::move(MemoryCategory from, MemoryCategory to, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  at(in_use_, from) -= bytes;
  at(in_use_, to) += bytes;
}

BytesByCategory MemoryAccount::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

BytesByCategory MemoryAccount::at_peak() const {
  const std::lock_guard lock(mutex_);
  return at_peak_;
}

Bytes MemoryAccount::total() const {
  const std::lock_guard lock(mutex_);
  return Bytes(total_);
}

Bytes MemoryAccount::peak() const {
  const std::lock_guard lock(mutex_);
  return Bytes(peak_);
}

void MemoryAccount::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = total_;
  at_peak_ = in_use_;
}

StageMemory stage_memory(const MemoryAccount& account) {
  const BytesByCategory bytes = account.at_peak();
  const auto of = [&](MemoryCategory category) { return Bytes(bytes[static_cast<std::size_t>(category)]); };
  StageMemory memory;
  memory.parameters = of(MemoryCategory::parameters);
  memory.gradients = of(MemoryCategory::gradients);
  memory.optimizer = of(MemoryCategory::optimizer);
  memory.activations = of(MemoryCategory::activations);
  memory.transient = of(MemoryCategory::transient);
  memory.communication = of(MemoryCategory::communication);
  memory.peak_allocated = account.peak();
  return memory;
}

AccountScope::AccountScope(MemoryAccount& account) : previous_(current_account) {
  current_account = &account;
}
AccountScope::~AccountScope() {
  current_account = previous_;
}
MemoryAccount& AccountScope::current() {
  return current_account != nullptr ? *current_account : unassigned();
}

CategoryScope::CategoryScope(MemoryCategory category) : previous_(current_category) {
  current_category = category;
}
CategoryScope::~CategoryScope() {
  current_category = previous_;
}
MemoryCategory CategoryScope::current() {
  return current_category;
}

}  // namespace reckon
