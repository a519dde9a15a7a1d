// Memory of one rank, counted by category at every allocation, with an enforced limit. The counters that matter are
// those at the moment of the highest total: the peak of each category alone never happens at one time.
#pragma once

#include <cstdint>
#include <mutex>

#include "plan/memory_category.h"
#include "plan/step_profile.h"
#include "plan/units.h"

namespace reckon {

/// Counters of one rank. Outlives every block that is booked on it. Safe to use from several threads.
class MemoryAccount {
 public:
  /// `limit` 0 = none; `label` names the rank in messages ("rank 3").
  explicit MemoryAccount(Bytes limit = Bytes(0), std::int64_t rank = 0) : limit_(limit.value), rank_(rank) {}

  /// Throws RunError (exit code "does not fit") that names category, request, use and limit.
  void book(MemoryCategory category, std::int64_t bytes);
  void release(MemoryCategory category, std::int64_t bytes);
  void move(MemoryCategory from, MemoryCategory to, std::int64_t bytes);

  BytesByCategory in_use() const;
  BytesByCategory at_peak() const;
  Bytes total() const;
  Bytes peak() const;
  /// Starts a new search for the peak from what is in use now.
  void reset_peak();

 private:
  mutable std::mutex mutex_;
  std::int64_t limit_, rank_;
  BytesByCategory in_use_{}, at_peak_{};
  std::int64_t total_ = 0, peak_ = 0;
};

/// The categories and the peak as a row of the profile.
StageMemory stage_memory(const MemoryAccount& account);

/// The account and category that allocations of this thread are booked on, for the life of the scope.
class AccountScope {
 public:
  explicit AccountScope(MemoryAccount& account);
  ~AccountScope();
  AccountScope(const AccountScope&) = delete;
  AccountScope& operator=(const AccountScope&) = delete;
  static MemoryAccount& current();

 private:
  MemoryAccount* previous_;
};

class CategoryScope {
 public:
  explicit CategoryScope(MemoryCategory category);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;
  static MemoryCategory current();

 private:
  MemoryCategory previous_;
};

}  // namespace reckon
