// CPU and device give the same bytes and the same numbers, for every format.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/quant/quantize_cuda.h"
#include "tests/device/device_buffer.h"
#include "tests/quant/reference.h"

namespace reckon {
namespace {

constexpr int kRanks = 3;

class QuantizeDevice : public DeviceTest {};

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  if (count > 2000) values[3] = std::nanf("");
  return values;
}

std::size_t size_of(const Storage& storage, std::int64_t count) {
  return static_cast<std::size_t>(storage_bytes(storage, count).value);
}

/// Calls `check(storage, count)` for every format, several blocks and sizes with tails.
template <class Check>
void for_storages(Check check) {
  for (const NumberFormat format : block_formats())
    for (const int block : {16, 24, 128, 2048})
      for (const std::int64_t count : {1, 15, 129, 5003, 1000003})
        check(Storage{format, block, block == 24 ? ScaleFormat::fp32 : ScaleFormat::bf16}, count);
}

std::string name_of_case(const Storage& storage, std::int64_t count) {
  return std::string(name_of(storage.format)) + " block " + std::to_string(storage.block) + " count " +
         std::to_string(count);
}

TEST_F(QuantizeDevice, GivesTheBytesOfTheCpu) {
  for_storages([](const Storage& storage, std::int64_t count) {
    const std::vector<float> values = random_values(count, 1);
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
      const QuantizeOptions options{rounding, 99, 12345};
      std::vector<std::byte> expected(size_of(storage, count));
      quantize(values, storage, options, expected);
      const DeviceBuffer<float> on_device(values);
      const DeviceBuffer<std::byte> bytes(expected.size());
      quantize_cuda(on_device.address(), count, storage, options, bytes.address(), nullptr);
      EXPECT_TRUE(bytes.read() == expected) << name_of_case(storage, count);
    }
  });
}

TEST_F(QuantizeDevice, DecodesAndAddsLikeTheCpu) {
  for_storages([](const Storage& storage, std::int64_t count) {
    std::vector<std::byte> bytes(size_of(storage, count));
    std::vector<float> values = random_values(count, 2);
    if (count > 2000) values[3] = 0.0f;  // NaN equals nothing
    quantize(values, storage, {}, bytes);
    std::vector<float> expected(values.size()), sums(values.size(), 0.5f);
    dequantize(bytes, storage, expected);
    const DeviceBuffer<std::byte> on_device(bytes);
    const DeviceBuffer<float> decoded(values.size()), added(sums);
    dequantize_cuda(on_device.address(), storage, decoded.address(), count, nullptr);
    dequantize_add_cuda(on_device.address(), storage, added.address(), count, nullptr);
    EXPECT_TRUE(decoded.read() == expected) << name_of_case(storage, count);
    dequantize_add(bytes, storage, sums);
    EXPECT_TRUE(added.read() == sums) << name_of_case(storage, count);
  });
}

TEST_F(QuantizeDevice, SumsPartsAndQuantizesAgainInOnePass) {
  for_storages([](const Storage& storage, std::int64_t count) {
    const std::size_t size = (size_of(storage, count) + 3) / 4 * 4;
    std::vector<std::byte> parts(size * kRanks);
    std::vector<float> expected(static_cast<std::size_t>(count));
    for (int rank = 0; rank < kRanks; ++rank) {
      std::vector<float> values = random_values(count, static_cast<unsigned>(10 + rank));
      if (count > 2000) values[3] = 0.0f;
      const std::span<std::byte> part(parts.data() + size * static_cast<std::size_t>(rank), size_of(storage, count));
      quantize(values, storage, {}, part);
      if (rank == 0) dequantize(part, storage, expected);
      else dequantize_add(part, storage, expected);
    }
    std::vector<std::byte> codes(size_of(storage, count));
    quantize(expected, storage, {}, codes);
    const DeviceBuffer<std::byte> on_device(parts), out(codes.size());
    const DeviceBuffer<float> sums(static_cast<std::size_t>(count));
    sum_and_quantize_cuda(on_device.address(), static_cast<std::int64_t>(size), kRanks, storage, sums.address(), count,
                          {}, out.address(), nullptr);
    EXPECT_TRUE(sums.read() == expected) << name_of_case(storage, count);
    EXPECT_TRUE(out.read() == codes) << name_of_case(storage, count);
  });
}

TEST_F(QuantizeDevice, AccumulatesInPlace) {
  for_storages([](const Storage& storage, std::int64_t count) {
    std::vector<float> values = random_values(count, 5), gradient = random_values(count, 6);
    if (count > 2000) values[3] = gradient[3] = 0.0f;
    std::vector<std::byte> stored(size_of(storage, count)), expected(stored.size());
    quantize(values, storage, {}, stored);
    const DeviceBuffer<std::byte> on_device(stored);
    const DeviceBuffer<float> sums(gradient);
    dequantize_add(stored, storage, gradient);
    quantize(gradient, storage, {}, expected);
    accumulate_cuda(on_device.address(), storage, sums.address(), count, {}, nullptr);
    EXPECT_TRUE(sums.read() == gradient) << name_of_case(storage, count);
    EXPECT_TRUE(on_device.read() == expected) << name_of_case(storage, count);
  });
}

}  // namespace
}  // namespace reckon
