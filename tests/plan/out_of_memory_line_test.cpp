#include "plan/out_of_memory_line.h"

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

TEST(OutOfMemoryLine, BareSizeWithThePrintedPrecision) {
  const OutOfMemoryLine line = read_out_of_memory_line("512.00 MiB");
  EXPECT_EQ(line.asked.value, 512 << 20);
  EXPECT_EQ(line.tolerance.value, 5243);  // 0.005 MiB = 5242.88 bytes, rounded up
  EXPECT_FALSE(line.capacity);
  EXPECT_EQ(read_out_of_memory_line("2GiB").tolerance.value, kGibibyte / 2);
  EXPECT_EQ(read_out_of_memory_line("536870912 bytes").tolerance.value, 0);
}

TEST(OutOfMemoryLine, MessageOfNewerVersions) {
  const OutOfMemoryLine line = read_out_of_memory_line(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.74 GiB. GPU 0 has a total capacity of 79.15 GiB "
      "of "
      "which 1.33 GiB is free. Process 17 has 77.81 GiB memory in use. Of the allocated memory 57.88 GiB is allocated "
      "by "
      "PyTorch, and 17.62 GiB is reserved by PyTorch but unallocated.");
  const auto gib = [](double size) { return static_cast<double>(kGibibyte) * size; };
  EXPECT_NEAR(static_cast<double>(line.asked.value), gib(3.74), 1);
  EXPECT_NEAR(static_cast<double>(line.capacity->value), gib(79.15), 1);
  EXPECT_NEAR(static_cast<double>(line.free->value), gib(1.33), 1);
  EXPECT_NEAR(static_cast<double>(line.allocated->value), gib(57.88), 1);
  EXPECT_NEAR(static_cast<double>(line.cached->value), gib(17.62), 1);
}

TEST(OutOfMemoryLine, MessageOfOlderVersions) {
  const OutOfMemoryLine line = read_out_of_memory_line(
      "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 39.59 GiB total capacity; 37.25 GiB "
      "already "
      "allocated; 8.00 MiB free; 38.25 GiB reserved in total by PyTorch)");
  EXPECT_EQ(line.asked.value, 20 << 20);
  EXPECT_NEAR(static_cast<double>(line.cached->value), static_cast<double>(kGibibyte), 2);  // 38.25 - 37.25
  EXPECT_EQ(line.free->value, 8 << 20);
}

TEST(OutOfMemoryLine, TextWithoutASizeIsRefused) {
  for (const char* text : {"", "12", "out of memory", "3.7.1 gib", "12 apples"})
    EXPECT_THROW(read_out_of_memory_line(text), ConfigError) << text;
}

}  // namespace
}  // namespace reckon
