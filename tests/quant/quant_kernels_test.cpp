// The device kernels' lanes and index mapping, run on the host: all blocks, each with all its lanes, one after the
// other in a scrambled order, must give the bytes of the CPU path. Covers tails, odd sizes and every lane count without
// a device.
#include "runtime/quant/quant_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/quant/quantize.h"
#include "runtime/quant/with_format.h"
#include "tests/quant/reference.h"

namespace reckon {
namespace {

using namespace quant;

template <class Value>
KernelTensor<Value> tensor_of(Value* values, std::int64_t elements, std::byte* bytes, Storage storage) {
  auto tensor = kernel_tensor(values, elements, bytes, quantized_layout(storage, elements), storage.block,
                              scale_type(storage.scale));
  tensor.microscaling = storage.format == NumberFormat::mxfp4;
  tensor.has_tensor_scale = storage.format == NumberFormat::nvfp4;
  return tensor;
}

std::vector<std::byte> quantized_by_lanes(const std::vector<float>& values, Storage requested,
                                          const QuantizeOptions& options) {
  const Storage storage = with_fixed_blocks(requested);
  const auto elements = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, elements).value));
  auto tensor = tensor_of(values.data(), elements, bytes.data(), storage);
  tensor.stochastic = options.rounding == Rounding::stochastic;
  tensor.seed = options.seed;
  tensor.first_index = static_cast<std::uint64_t>(options.first_index);
  if (tensor.has_tensor_scale) {
    constexpr int kLanes = 96;
    std::uint32_t largest = 0;
    for (int lane = 0; lane < kLanes; ++lane) largest = std::max(largest, lane_largest_finite(tensor, lane, kLanes));
    const float factor = tensor_scale_of(float_of(largest));
    std::memcpy(bytes.data(), &factor, sizeof(factor));
  }
  const int lanes = lanes_per_block(storage.block);
  with_format(storage.format, [&](auto format) {
    for (std::int64_t block = tensor.blocks - 1; block >= 0; --block) {
      BlockRange range = empty_range();
      for (int lane = lanes - 1; lane >= 0; --lane) range = merge(lane_range(tensor, block, lane, lanes), range);
      for (int lane = lanes - 1; lane >= 0; --lane) lane_encode<decltype(format)>(tensor, block, lane, lanes, range);
    }
  });
  return bytes;
}

std::vector<Storage> storages() {
  std::vector<Storage> all;
  for (const NumberFormat format : block_formats())
    for (const int block : {16, 24, 128, 2048})
      all.push_back({format, block, block == 24 ? ScaleFormat::fp32 : ScaleFormat::bf16});
  return all;
}

TEST(QuantKernels, LanesGiveTheBytesOfTheCpu) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal;
  for (const std::int64_t count : {1, 8, 15, 129, 2049, 5003}) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(generator);
    values[values.size() / 2] = -0.0f;
    if (count > 2000) values[3] = std::nanf("");
    for (const Storage& storage : storages())
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
        const QuantizeOptions options{rounding, 99, 12345};
        std::vector<std::byte> expected(static_cast<std::size_t>(storage_bytes(storage, count).value));
        quantize(values, storage, options, expected);
        EXPECT_TRUE(quantized_by_lanes(values, storage, options) == expected)
            << name_of(storage.format) << " block " << storage.block << " count " << count;
      }
  }
}

TEST(QuantKernels, GroupsDecodeToTheValuesOfTheCpu) {
  std::mt19937 generator(4);
  std::normal_distribution<float> normal;
  for (const std::int64_t count : {1, 7, 130, 2051}) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(generator);
    for (const Storage& requested : storages()) {
      const Storage storage = with_fixed_blocks(requested);
      std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, count).value));
      quantize(values, storage, {}, bytes);
      std::vector<float> expected(values.size()), decoded(values.size(), 7.0f), sums(values.size(), 0.5f);
      dequantize(bytes, storage, expected);
      with_format(storage.format, [&](auto format) {
        using Format = decltype(format);
        for (std::int64_t group = 0; group * kGroup < count; ++group) {
          decode_group<Format, false>(tensor_of(decoded.data(), count, bytes.data(), storage), group);
          decode_group<Format, true>(tensor_of(sums.data(), count, bytes.data(), storage), group);
        }
      });
      EXPECT_EQ(decoded, expected) << name_of(storage.format) << " count " << count;
      for (float& value : expected) value += 0.5f;
      EXPECT_EQ(sums, expected) << name_of(storage.format) << " count " << count;
    }
  }
}

TEST(QuantKernels, LanesArePowersOfTwoWithinAWarp) {
  EXPECT_EQ(lanes_per_block(16), 2);
  EXPECT_EQ(lanes_per_block(24), 2);
  EXPECT_EQ(lanes_per_block(128), 16);
  EXPECT_EQ(lanes_per_block(2048), 32);
}

}  // namespace
}  // namespace reckon
