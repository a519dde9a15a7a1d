// The device kernels, played on the host: every thread of every block and warp of a launch, in rounds, with the warp's
// exchange of ranges, in an order of its own, must give the bytes of the CPU path. Covers tails, odd sizes, misaligned
// parts and every lane count without a device.
#include "runtime/quant/quant_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

constexpr LaunchShape kLaunch{3, 64};  // fewer threads than there is work, so that each takes several rounds

/// A kernel whose warps exchange ranges: `range_of(place)`, butterfly over a block's lanes, `encode(place, range)`.
template <class RangeOf, class Encode>
void play_warps(LaunchShape shape, std::int64_t blocks, int lanes, RangeOf range_of, Encode encode) {
  const std::int64_t threads = shape.blocks * shape.threads;
  for (std::int64_t first = threads - kWarp; first >= 0; first -= kWarp)
    for (std::int64_t round = 0; round < rounds_of(blocks, lanes, threads); ++round) {
      std::array<LanePlace, kWarp> places;
      std::array<BlockRange, kWarp> ranges;
      for (int i = kWarp - 1; i >= 0; --i) {
        const auto thread = static_cast<int>((first + i) % shape.threads);
        const auto at = static_cast<std::size_t>(i);
        places[at] = lane_place({(first + i) / shape.threads, shape.blocks, thread, shape.threads}, lanes, round);
        ranges[at] = places[at].block < blocks ? range_of(places[at]) : empty_range();
      }
      for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const auto before = ranges;
        for (int i = 0; i < kWarp; ++i)
          ranges[static_cast<std::size_t>(i)] =
              merge(before[static_cast<std::size_t>(i)], before[static_cast<std::size_t>(i ^ distance)]);
      }
      for (std::size_t i = kWarp; i-- > 0;)
        if (places[i].block < blocks) encode(places[i], ranges[i]);
    }
}

template <class Value>
void set_rounding(KernelTensor<Value>& tensor, const QuantizeOptions& options) {
  tensor.stochastic = options.rounding == Rounding::stochastic;
  tensor.seed = options.seed;
  tensor.first_index = static_cast<std::uint64_t>(options.first_index);
}

std::vector<std::byte> quantized_by_threads(const std::vector<float>& values, Storage requested,
                                            const QuantizeOptions& options) {
  const Storage storage = with_fixed_blocks(requested);
  const auto elements = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, elements).value));
  auto tensor = tensor_of(values.data(), elements, bytes.data(), storage);
  set_rounding(tensor, options);
  if (tensor.has_tensor_scale) {
    std::uint32_t largest = 0;
    for_each_thread(kLaunch, [&](ThreadPlace place) {
      largest = std::max(largest, lane_largest_finite(tensor, place.index(), place.count()));
    });
    const float factor = tensor_scale_of(float_of(largest));
    std::memcpy(bytes.data(), &factor, sizeof(factor));
  }
  const int lanes = lanes_per_block(storage.block);
  with_format(storage.format, [&](auto format) {
    play_warps(
        kLaunch, tensor.blocks, lanes,
        [&](LanePlace place) { return lane_range(tensor, place.block, place.lane, lanes); },
        [&](LanePlace place, BlockRange range) {
          lane_encode<decltype(format)>(tensor, place.block, place.lane, lanes, range);
        });
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

TEST(QuantKernels, ThreadsGiveTheBytesOfTheCpu) {
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
        EXPECT_TRUE(quantized_by_threads(values, storage, options) == expected)
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
        for_each_thread(kLaunch, [&](ThreadPlace place) {
          decode_groups<Format, false>(tensor_of(decoded.data(), count, bytes.data(), storage), place);
          decode_groups<Format, true>(tensor_of(sums.data(), count, bytes.data(), storage), place);
        });
      });
      EXPECT_EQ(decoded, expected) << name_of(storage.format) << " count " << count;
      for (float& value : expected) value += 0.5f;
      EXPECT_EQ(sums, expected) << name_of(storage.format) << " count " << count;
    }
  }
}

/// Every lane of every block is worked on by one thread in one round, whatever the launch.
TEST(QuantKernels, EveryLaneOfEveryBlockIsTakenOnce) {
  for (const LaunchShape shape : {LaunchShape{1, 32}, LaunchShape{3, 64}, LaunchShape{2, 256}})
    for (const int lanes : {1, 2, 8, 32})
      for (const std::int64_t blocks : {1, 7, 33, 500}) {
        std::vector<int> taken(static_cast<std::size_t>(blocks * lanes));
        for_each_thread(shape, [&](ThreadPlace place) {
          for (std::int64_t round = 0; round < rounds_of(blocks, lanes, place.count()); ++round)
            if (const LanePlace at = lane_place(place, lanes, round); at.block < blocks)
              ++taken[static_cast<std::size_t>(at.block * lanes + at.lane)];
        });
        EXPECT_EQ(taken, std::vector<int>(taken.size(), 1)) << shape.blocks << " x " << shape.threads << ", " << lanes;
      }
}

/// Parts of several ranks, side by side at a stride that is a multiple of nothing.
struct Parts {
  std::vector<std::byte> bytes;
  std::int64_t stride;
  std::vector<float> sum;  // decoded and added by the CPU path, in order
};

Parts random_parts(Storage storage, std::int64_t count, int ranks, const std::vector<float>* start) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  const auto size = static_cast<std::size_t>(storage_bytes(storage, count).value);
  Parts parts{std::vector<std::byte>((size + 5) * static_cast<std::size_t>(ranks)), static_cast<std::int64_t>(size) + 5,
              std::vector<float>(static_cast<std::size_t>(count))};
  if (start != nullptr) parts.sum = *start;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(generator);
    const std::span<std::byte> part(parts.bytes.data() + rank * parts.stride, size);
    quantize(values, storage, {}, part);
    if (rank == 0 && start == nullptr) dequantize(part, storage, parts.sum);
    else dequantize_add(part, storage, parts.sum);
  }
  return parts;
}

/// The fused kernel on all its threads.
void play_sum_and_quantize(const QuantizedParts& parts, Storage storage, std::vector<float>& sums, std::byte* out,
                           const QuantizeOptions& options) {
  auto tensor = tensor_of(sums.data(), static_cast<std::int64_t>(sums.size()), out, storage);
  set_rounding(tensor, options);
  const int lanes = lanes_per_block(storage.block);
  with_format(storage.format, [&](auto format) {
    using Format = decltype(format);
    play_warps(
        kLaunch, tensor.blocks, lanes,
        [&](LanePlace place) {
          lane_sum<Format>(parts, tensor, place.block, place.lane, lanes);
          return lane_range(tensor, place.block, place.lane, lanes);
        },
        [&](LanePlace place, BlockRange range) { lane_encode<Format>(tensor, place.block, place.lane, lanes, range); });
  });
}

/// Formats whose scales depend on their block alone; NVFP4's take a pass of their own.
bool is_fused(const Storage& storage) {
  return storage.format != NumberFormat::nvfp4;
}

TEST(QuantKernels, SumsOfPartsAndTheirCodesAreThoseOfTheCpu) {
  const QuantizeOptions options{Rounding::stochastic, 5, 77};
  for (const std::int64_t count : {1, 9, 130, 4099})
    for (const Storage& requested : storages()) {
      if (!is_fused(requested)) continue;
      const Storage storage = with_fixed_blocks(requested);
      Parts parts = random_parts(storage, count, 3, nullptr);
      std::vector<std::byte> expected(static_cast<std::size_t>(storage_bytes(storage, count).value)),
          out(expected.size());
      quantize(parts.sum, storage, options, expected);
      std::vector<float> sums(static_cast<std::size_t>(count), 9.0f);
      play_sum_and_quantize({parts.bytes.data(), parts.stride, 3, false}, storage, sums, out.data(), options);
      EXPECT_EQ(sums, parts.sum) << name_of(storage.format) << " block " << storage.block << " count " << count;
      EXPECT_TRUE(out == expected) << name_of(storage.format) << " block " << storage.block << " count " << count;
    }
}

TEST(QuantKernels, AccumulationInPlaceIsThatOfTheCpu) {
  for (const std::int64_t count : {1, 9, 130, 4099})
    for (const Storage& requested : storages()) {
      if (!is_fused(requested)) continue;
      const Storage storage = with_fixed_blocks(requested);
      std::vector<float> gradient(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
      Parts stored = random_parts(storage, count, 1, &gradient);
      std::vector<std::byte> expected(static_cast<std::size_t>(storage_bytes(storage, count).value));
      quantize(stored.sum, storage, {}, expected);
      play_sum_and_quantize({stored.bytes.data(), 0, 1, true}, storage, gradient, stored.bytes.data(), {});
      stored.bytes.resize(expected.size());
      EXPECT_EQ(gradient, stored.sum) << name_of(storage.format) << " block " << storage.block << " count " << count;
      EXPECT_TRUE(stored.bytes == expected) << name_of(storage.format) << " block " << storage.block;
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
