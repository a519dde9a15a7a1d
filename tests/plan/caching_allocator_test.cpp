// Expected segments are worked out by hand from the allocator's rules; see the comments.
#include "plan/caching_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace reckon {
namespace {

constexpr std::int64_t kMi = 1 << 20;
Bytes mib(double value) {
  return Bytes(static_cast<std::int64_t>(value * kMi));
}

TEST(CachingAllocator, RoundsRequestsTo512Bytes) {
  EXPECT_EQ(CachingAllocator::rounded(Bytes(0)).value, 512);
  EXPECT_EQ(CachingAllocator::rounded(Bytes(1)).value, 512);
  EXPECT_EQ(CachingAllocator::rounded(Bytes(512)).value, 512);
  EXPECT_EQ(CachingAllocator::rounded(Bytes(513)).value, 1024);
}

TEST(CachingAllocator, SegmentSizesFollowTheThreeClasses) {
  EXPECT_EQ(CachingAllocator::segment_size(Bytes(512)), mib(2));
  EXPECT_EQ(CachingAllocator::segment_size(mib(1)), mib(2));
  EXPECT_EQ(CachingAllocator::segment_size(Bytes(kMi + 512)), mib(20));
  EXPECT_EQ(CachingAllocator::segment_size(Bytes(10 * kMi - 512)), mib(20));
  EXPECT_EQ(CachingAllocator::segment_size(mib(10)), mib(10));
  EXPECT_EQ(CachingAllocator::segment_size(Bytes(10 * kMi + 512)), mib(12));
}

TEST(CachingAllocator, SmallRequestsShareOneSegment) {
  CachingAllocator allocator;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(allocator.allocate(mib(0.5)));  // 4 x 0.5 MiB fill one 2 MiB segment
  EXPECT_EQ(allocator.segments(), 1);
  EXPECT_EQ(allocator.reserved(), mib(2));
  ASSERT_TRUE(allocator.allocate(Bytes(1)));
  EXPECT_EQ(allocator.segments(), 2);
  EXPECT_EQ(allocator.allocated(), mib(2) + Bytes(512));
}

TEST(CachingAllocator, MiddleRequestsSplitA20MiBSegment) {
  CachingAllocator allocator;
  ASSERT_TRUE(allocator.allocate(mib(9)));  // 20 -> 9 + 11
  ASSERT_TRUE(allocator.allocate(mib(9)));  // 11 -> 9 + 2
  EXPECT_EQ(allocator.reserved(), mib(20));
  ASSERT_TRUE(allocator.allocate(mib(1.5)));  // 2 MiB block; the 0.5 MiB left is not more than 1 MiB: no split
  EXPECT_EQ(allocator.reserved(), mib(20));
  EXPECT_EQ(allocator.allocated(), mib(20));
  ASSERT_TRUE(allocator.allocate(mib(2)));
  EXPECT_EQ(allocator.reserved(), mib(40));
}

TEST(CachingAllocator, LargePoolKeepsUpToOneMiBUnsplit) {
  CachingAllocator allocator;
  const auto block = allocator.allocate(mib(32));
  allocator.free(*block);
  const auto reused = allocator.allocate(mib(31));  // exactly 1 MiB would be left: kept whole
  EXPECT_EQ(allocator.allocated(), mib(32));
  allocator.free(*reused);
  ASSERT_TRUE(allocator.allocate(Bytes(31 * kMi - 512)));  // 1 MiB + 512 B would be left: split
  EXPECT_EQ(allocator.allocated(), Bytes(31 * kMi - 512));
  EXPECT_EQ(allocator.reserved(), mib(32));
}

TEST(CachingAllocator, TakesTheSmallestBlockThatFits) {
  CachingAllocator allocator;
  const auto big = allocator.allocate(mib(64));
  const auto small = allocator.allocate(mib(24));
  allocator.free(*big);
  allocator.free(*small);
  ASSERT_TRUE(allocator.allocate(mib(23.5)));
  EXPECT_EQ(allocator.allocated(), mib(24));  // from the 24 MiB block, unsplit
  ASSERT_TRUE(allocator.allocate(mib(64)));
  EXPECT_EQ(allocator.reserved(), mib(88));
}

TEST(CachingAllocator, FragmentationNeedsANewSegmentAlthoughEnoughIsFree) {
  CachingAllocator allocator;
  const auto whole = allocator.allocate(mib(40));
  allocator.free(*whole);
  const auto first = allocator.allocate(mib(16));   // 40 -> 16 + 24
  const auto second = allocator.allocate(mib(12));  // 24 -> 12 + 12
  allocator.free(*first);                           // free: 16 and 12, not adjacent
  ASSERT_TRUE(allocator.allocate(mib(20)));         // fits neither
  EXPECT_EQ(allocator.reserved(), mib(60));
  allocator.free(*second);  // 16 + 12 + 12 merge back to 40
  ASSERT_TRUE(allocator.allocate(mib(40)));
  EXPECT_EQ(allocator.reserved(), mib(60));
}

TEST(CachingAllocator, BlocksAreNotSharedBetweenStreams) {
  CachingAllocator allocator;
  const auto block = allocator.allocate(mib(16), 0);
  allocator.free(*block);
  ASSERT_TRUE(allocator.allocate(mib(16), 1));
  EXPECT_EQ(allocator.reserved(), mib(32));
}

TEST(CachingAllocator, ReturnsCachedSegmentsBeforeItFails) {
  CachingAllocator allocator(mib(64));
  const auto first = allocator.allocate(mib(40));
  allocator.free(*first);
  const auto second = allocator.allocate(mib(50));  // 40 + 50 > 64: the cached 40 go back
  ASSERT_TRUE(second);
  EXPECT_EQ(allocator.reserved(), mib(50));
  EXPECT_EQ(allocator.peak_reserved(), mib(50));
  EXPECT_FALSE(allocator.allocate(mib(16)));
  EXPECT_EQ(allocator.allocated(), mib(50));  // a failed request changes nothing
}

TEST(CachingAllocator, RefusesToFreeTwice) {
  CachingAllocator allocator;
  const auto block = allocator.allocate(mib(3));
  allocator.free(*block);
  EXPECT_THROW(allocator.free(*block), std::logic_error);
}

TEST(CachingAllocator, RandomSequencesReturnToWholeSegments) {
  std::mt19937_64 random(20261130);
  CachingAllocator allocator;
  std::vector<int> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const auto size = std::int64_t{1} << (random() % 25);
      live.push_back(*allocator.allocate(Bytes(size + static_cast<std::int64_t>(random() % 4096)), random() % 3));
    } else {
      std::swap(live[random() % live.size()], live.back());
      allocator.free(live.back());
      live.pop_back();
    }
    ASSERT_LE(allocator.allocated(), allocator.reserved());
  }
  for (const int block : live) allocator.free(block);
  EXPECT_EQ(allocator.allocated().value, 0);
  EXPECT_GT(allocator.segments(), 0);  // cached, not returned: the device was never full
  EXPECT_EQ(allocator.peak_reserved(), allocator.reserved());
}

}  // namespace
}  // namespace reckon
