#include "plan/number_format.h"

#include <set>

#include <gtest/gtest.h>

#include "plan/activation_class.h"
#include "plan/collective.h"

namespace reckon {
namespace {

TEST(NumberFormat, NamesAreUniqueAndReadBack) {
  std::set<std::string_view> names;
  for (const NumberFormat format : all_number_formats()) {
    EXPECT_TRUE(names.insert(name_of(format)).second) << name_of(format);
    EXPECT_EQ(number_format(name_of(format)), format);
  }
  EXPECT_EQ(names.size(), 26u);
  EXPECT_EQ(number_format("fp5"), std::nullopt);
}

TEST(NumberFormat, PlainFormatsTakeTheirWidth) {
  EXPECT_EQ(storage_bytes({NumberFormat::fp64}, 3).value, 24);
  EXPECT_EQ(storage_bytes({NumberFormat::fp32}, 3).value, 12);
  EXPECT_EQ(storage_bytes({NumberFormat::bf16}, 3).value, 6);
  EXPECT_EQ(storage_bytes({NumberFormat::bf16}, 0).value, 0);
}

TEST(NumberFormat, BlockScaledFormatsPackBitsAndAddOneScalePerStartedBlock) {
  EXPECT_EQ(storage_bytes({NumberFormat::int4, 128, ScaleFormat::bf16}, 256).value, 128 + 2 * 2);
  EXPECT_EQ(storage_bytes({NumberFormat::int5, 128, ScaleFormat::fp32}, 129).value, 81 + 2 * 4);    // 645 bits
  EXPECT_EQ(storage_bytes({NumberFormat::fp8_e4m3, 16, ScaleFormat::e8m0}, 33).value, 33 + 3);      // tail block
  EXPECT_EQ(storage_bytes({NumberFormat::uint4, 256, ScaleFormat::bf16}, 256).value, 128 + 2 * 2);  // scale, minimum
  EXPECT_EQ(storage_bytes({NumberFormat::int3, 128, ScaleFormat::bf16}, 0).value, 0);
}

TEST(NumberFormat, MicroscalingFormatsDictateTheirBlocks) {
  EXPECT_EQ(storage_bytes({NumberFormat::mxfp4, 128, ScaleFormat::fp32}, 64).value, 32 + 2);
  EXPECT_EQ(storage_bytes({NumberFormat::nvfp4, 128, ScaleFormat::fp32}, 64).value, 32 + 4 + 4);
}

TEST(ActivationClass, NamesReadBackAndBookkeepingClassesHaveNoPolicy) {
  for (const ActivationClass a : policy_classes()) EXPECT_EQ(activation_class(name_of(a)), a);
  EXPECT_EQ(activation_class("querry"), std::nullopt);
  EXPECT_EQ(activation_class("down_input"), ActivationClass::down_input);
  for (const ActivationClass a : policy_classes()) {
    EXPECT_NE(a, ActivationClass::tokens);
    EXPECT_NE(a, ActivationClass::transient);
    EXPECT_NE(a, ActivationClass::log_sum_exp);
  }
}

TEST(Collective, BytesSentPerRank) {
  const Bytes size(800);
  EXPECT_DOUBLE_EQ(bytes_sent_per_rank(Collective::all_reduce, size, 8), 2 * 800.0 * 7 / 8);
  EXPECT_DOUBLE_EQ(bytes_sent_per_rank(Collective::all_gather, size, 8), 700);
  EXPECT_DOUBLE_EQ(bytes_sent_per_rank(Collective::reduce_scatter, size, 8), 700);
  EXPECT_DOUBLE_EQ(bytes_sent_per_rank(Collective::all_to_all, size, 2), 400);
  EXPECT_DOUBLE_EQ(bytes_sent_per_rank(Collective::send_receive, size, 2), 800);
  for (const Collective c : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                             Collective::all_to_all, Collective::broadcast, Collective::send_receive})
    EXPECT_EQ(bytes_sent_per_rank(c, size, 1), 0) << name_of(c);
}

}  // namespace
}  // namespace reckon
