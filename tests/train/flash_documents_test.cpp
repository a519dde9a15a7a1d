// Which attention tasks the variable-length kernels of a device are given.
#include "runtime/train/device/flash_documents.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

AttentionTask document(std::int64_t first, std::int64_t length) {
  return {first, length, first, length, 0};
}

TEST(FlashDocuments, DocumentsThatFollowEachOtherBecomeBorders) {
  const AttentionTask tasks[] = {document(0, 3), document(3, 5), document(8, 1)};
  const auto borders = flash_borders(tasks, 9);
  ASSERT_TRUE(borders);
  EXPECT_EQ(borders->starts, (std::vector<std::int32_t>{0, 3, 8, 9}));
  EXPECT_EQ(borders->longest, 5);
}

TEST(FlashDocuments, PaddingGapsAndBlocksOfOtherRanksAreLeftToTheTasks) {
  const AttentionTask padded[] = {document(0, 3)}, gap[] = {document(0, 3), document(4, 2)};
  EXPECT_FALSE(flash_borders(padded, 4));
  EXPECT_FALSE(flash_borders(gap, 6));
  const AttentionTask shifted[] = {{0, 4, 0, 4, 1}}, other_keys[] = {{0, 4, 0, 8, 4}}, elsewhere[] = {{0, 4, 4, 4, 0}};
  EXPECT_FALSE(flash_borders(shifted, 4));
  EXPECT_FALSE(flash_borders(other_keys, 4));
  EXPECT_FALSE(flash_borders(elsewhere, 4));
}

}  // namespace
}  // namespace reckon
