#include "runtime/quant/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "plan/errors.h"
#include "runtime/quant/with_format.h"
#include "tests/quant/reference.h"

namespace reckon {
namespace {

using Bytes_ = std::vector<std::byte>;
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kLargestFloat = std::numeric_limits<float>::max();

// --- helpers ------------------------------------------------------------------------------------------------------

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator) * std::exp2(std::round(3.0f * normal(generator)));
  return values;
}

Bytes_ quantized(const std::vector<float>& values, Storage storage, const QuantizeOptions& options = {}) {
  Bytes_ bytes(static_cast<std::size_t>(storage_bytes(storage, static_cast<std::int64_t>(values.size())).value),
               std::byte{0xa5});
  quantize(values, storage, options, bytes);
  return bytes;
}

std::vector<float> round_trip(const std::vector<float>& values, Storage storage, const QuantizeOptions& options = {}) {
  std::vector<float> decoded(values.size());
  dequantize(quantized(values, storage, options), storage, decoded);
  return decoded;
}

/// Every storage that can be executed: each format with each scale type, one block length.
std::vector<Storage> all_storages(int block) {
  std::vector<Storage> storages;
  for (const NumberFormat format : block_formats())
    for (const ScaleFormat scale : {ScaleFormat::fp32, ScaleFormat::bf16, ScaleFormat::e8m0, ScaleFormat::e4m3}) {
      const bool byte_scale = scale == ScaleFormat::e8m0 || scale == ScaleFormat::e4m3;
      if (!(is_affine(format) && byte_scale)) storages.push_back({format, block, scale});
    }
  return storages;
}

std::string text_of(Storage storage) {
  return std::string(name_of(storage.format)) + " block " + std::to_string(storage.block) + " scale " +
         std::to_string(static_cast<int>(storage.scale));
}

// --- a scalar reference of the whole tensor: element by element through the core, bit by bit into the stream ---------

void put_bits(std::byte* codes, std::int64_t position, int bits, std::uint32_t code) {
  for (int bit = 0; bit < bits; ++bit) {
    const std::int64_t at = position * bits + bit;
    if ((code >> bit & 1u) != 0) codes[at / 8] |= static_cast<std::byte>(1u << at % 8);
  }
}

void put_little_endian(std::byte* to, std::uint32_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(bits >> 8 * i);
}

Bytes_ scalar_reference(const std::vector<float>& values, Storage requested, const QuantizeOptions& options) {
  const Storage storage = with_fixed_blocks(requested);
  const auto elements = static_cast<std::int64_t>(values.size());
  Bytes_ bytes(static_cast<std::size_t>(storage_bytes(storage, elements).value));
  const QuantizedLayout layout = quantized_layout(storage, elements);
  float factor = 1.0f;
  if (storage.format == NumberFormat::nvfp4) {
    float largest = 0;
    for (const float value : values)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    factor = quant::tensor_scale_of(largest);
    put_little_endian(bytes.data(), quant::bits_of(factor), 4);
  }
  quant::with_format(storage.format, [&](auto format) {
    using Format = decltype(format);
    for (std::int64_t block = 0; block < layout.blocks; ++block) {
      const std::int64_t start = block * storage.block, end = std::min(start + storage.block, elements);
      quant::BlockRange range{0, kInfinite, -kInfinite};
      for (std::int64_t i = start; i < end; ++i) {
        const float value = values[static_cast<std::size_t>(i)];
        range.largest_magnitude = std::max(range.largest_magnitude, quant::bits_of(value) & quant::kMagnitude);
        range.lowest = std::min(range.lowest, value);
        range.highest = std::max(range.highest, value);
      }
      const auto type = quant::scale_type(storage.scale);
      const quant::BlockScale scale = storage.format == NumberFormat::mxfp4
                                          ? quant::microscaling_block_scale(range)
                                          : quant::block_scale<Format>(range, type, factor);
      const int width = quant::scale_bytes(type);
      put_little_endian(bytes.data() + layout.scales + block * width, scale.scale_bits, width);
      if (Format::kAffine) put_little_endian(bytes.data() + layout.minimums + block * width, scale.minimum_bits, width);
      for (std::int64_t i = start; i < end; ++i) {
        const float value = values[static_cast<std::size_t>(i)];
        const quant::Stochastic random{
            quant::random_bits(options.seed, static_cast<std::uint64_t>(options.first_index + i))};
        const bool nearest = options.rounding == Rounding::nearest_even;
        const std::uint32_t code = nearest ? quant::encode_element<Format>(value, scale, quant::NearestEven{})
                                           : quant::encode_element<Format>(value, scale, random);
        put_bits(bytes.data() + layout.codes, i, Format::kBits, code);
      }
    }
  });
  return bytes;
}

// --- codes --------------------------------------------------------------------------------------------------------

TEST(QuantCore, EveryCodeDecodesToItsValueAndEncodesBack) {
  for (const NumberFormat format : block_formats()) {
    const std::vector<double> values = reference_values(format);
    quant::with_format(format, [&](auto core) {
      using Format = decltype(core);
      EXPECT_EQ(Format::kBits, payload_bits(format));
      EXPECT_EQ(static_cast<double>(Format::kLargest), reference_largest(format)) << name_of(format);
      for (std::size_t code = 0; code < values.size(); ++code) {
        if (std::isnan(values[code])) continue;
        const float decoded = Format::decode(static_cast<std::uint32_t>(code));
        EXPECT_EQ(decoded, static_cast<float>(values[code])) << name_of(format) << " code " << code;
        EXPECT_EQ(Format::encode(decoded, quant::NearestEven{}), code) << name_of(format);
      }
    });
  }
}

TEST(QuantCore, EncodesToTheNearestCodeAndTiesToEven) {
  for (const NumberFormat format : block_formats()) {
    std::vector<double> finite;
    for (const double value : reference_values(format))
      if (!std::isnan(value)) finite.push_back(value);
    std::ranges::sort(finite);
    quant::with_format(format, [&](auto core) {
      using Format = decltype(core);
      const auto expect_nearest = [&](float value) {
        EXPECT_EQ(Format::encode(value, quant::NearestEven{}), reference_code(format, static_cast<double>(value)))
            << name_of(format) << " of " << value;
      };
      for (std::size_t i = 0; i + 1 < finite.size(); ++i) {
        const auto middle = static_cast<float>((finite[i] + finite[i + 1]) / 2);
        if (format != NumberFormat::nf4) expect_nearest(middle);  // NF4's middles are not FP32 numbers
        expect_nearest(middle + 1e-5f * std::abs(middle));
        expect_nearest(middle - 1e-5f * std::abs(middle));
      }
      for (const float value : random_values(2000, 11)) expect_nearest(value);
      expect_nearest(static_cast<float>(reference_largest(format) * 1.7));
    });
  }
}

TEST(QuantCore, ScalesAreTheSmallestOfTheirTypeThatReachTheValue) {
  for (const float value : {1.0f, 1.0001f, 0.3f, 7.0f / 127.0f, 447.5f, 1e-3f})
    for (const auto type :
         {quant::ScaleType::fp32, quant::ScaleType::bf16, quant::ScaleType::e8m0, quant::ScaleType::e4m3}) {
      const std::uint32_t bits = quant::scale_at_least(type, value);
      EXPECT_GE(quant::decode_scale(type, bits), value);
      EXPECT_LT(quant::decode_scale(type, bits - 1), value) << value << " type " << static_cast<int>(type);
    }
  EXPECT_EQ(quant::decode_scale(quant::ScaleType::e4m3, quant::scale_at_least(quant::ScaleType::e4m3, 1e6f)), 448.0f);
}

// --- whole tensors ------------------------------------------------------------------------------------------------

TEST(Quantize, EqualsTheScalarReferenceToTheBit) {
  for (const int block : {16, 24, 32, 128, 2048})
    for (const Storage& storage : all_storages(block))
      for (const std::int64_t count : {1, 7, 16, 129, 4099})
        for (const Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
          const std::vector<float> values = random_values(count, 5);
          const QuantizeOptions options{rounding, 0x123456789abcdefu, 4294967290};  // crosses a 32-bit border
          EXPECT_TRUE(quantized(values, storage, options) == scalar_reference(values, storage, options))
              << text_of(storage) << " count " << count << " rounding " << static_cast<int>(rounding);
        }
}

/// Scale 1 and every border between two codes with the numbers next to it, so that loops that look codes up decide as
/// the core does; lengths that leave each tail.
TEST(Quantize, DecidesEveryBorderOfFourBitFormatsAsTheScalarReference) {
  for (const NumberFormat format :
       {NumberFormat::int4, NumberFormat::fp4_e2m1, NumberFormat::nf4, NumberFormat::mxfp4}) {
    std::vector<double> levels = reference_values(format);
    std::erase_if(levels, [](double level) { return std::isnan(level); });
    std::ranges::sort(levels);
    std::vector<float> values;
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
      const auto middle = static_cast<float>((levels[i] + levels[i + 1]) / 2);
      float value = middle;
      for (int step = 0; step < 6; ++step) value = std::nextafter(value, -kInfinite);
      for (int step = 0; step < 12; ++step, value = std::nextafter(value, kInfinite)) {
        if (values.size() % 16 == 0) values.push_back(static_cast<float>(reference_largest(format)));
        values.push_back(value);
      }
    }
    for (std::size_t cut = 0; cut < 16; ++cut, values.pop_back()) {
      const Storage storage{format, 16, ScaleFormat::fp32};
      EXPECT_TRUE(quantized(values, storage) == scalar_reference(values, storage, {})) << name_of(format) << cut;
    }
  }
}

/// Every code at every place of a block and a tail, against decode_element.
TEST(Dequantize, EveryCodeAtEveryPlaceIsTheCoresValue) {
  for (const NumberFormat format : block_formats())
    quant::with_format(format, [&](auto core) {
      using Format = decltype(core);
      const Storage storage = with_fixed_blocks({format, 24, ScaleFormat::fp32});
      for (std::int64_t count = 1; count <= 70; ++count)
        for (std::uint32_t first = 0; first < 1u << Format::kBits; first += 1u << (Format::kBits - 2)) {
          const QuantizedLayout layout = quantized_layout(storage, count);
          Bytes_ bytes(static_cast<std::size_t>(layout.bytes));
          if (format == NumberFormat::nvfp4) put_little_endian(bytes.data(), quant::bits_of(1.5f), 4);
          const float factor = format == NumberFormat::nvfp4 ? 1.5f : 1.0f;
          const auto type = quant::scale_type(storage.scale);
          const std::uint32_t scale_bits = quant::scale_at_least(type, 0.7f);
          const std::uint32_t minimum_bits = quant::minimum_at_most(type, -0.3f);
          for (std::int64_t block = 0; block < layout.blocks; ++block) {
            const int width = quant::scale_bytes(type);
            put_little_endian(bytes.data() + layout.scales + block * width, scale_bits, width);
            if (Format::kAffine) put_little_endian(bytes.data() + layout.minimums + block * width, minimum_bits, width);
          }
          const auto code_of = [&](std::int64_t i) {
            return (first + static_cast<std::uint32_t>(i)) & ((1u << Format::kBits) - 1u);
          };
          for (std::int64_t i = 0; i < count; ++i) put_bits(bytes.data() + layout.codes, i, Format::kBits, code_of(i));
          std::vector<float> decoded(static_cast<std::size_t>(count));
          dequantize(bytes, storage, decoded);
          const float scale = quant::decode_scale(type, scale_bits) * factor;
          const float minimum = Format::kAffine ? quant::decode_scale(type, minimum_bits) : 0.0f;
          for (std::int64_t i = 0; i < count; ++i) {
            const float expected = quant::decode_element<Format>(code_of(i), scale, minimum);
            ASSERT_EQ(quant::bits_of(decoded[static_cast<std::size_t>(i)]), quant::bits_of(expected))
                << name_of(format) << " element " << i << " of " << count;
          }
        }
    });
}

TEST(Quantize, Bf16InputGivesTheBytesOfTheSameNumbersInFp32) {
  std::vector<float> values = random_values(1003, 6);
  std::vector<Bf16Bits> bf16;
  for (float& value : values) {
    bf16.push_back(bf16_of(value));
    value = float_of_bf16(bf16.back());
  }
  for (const Storage& storage : all_storages(64)) {
    const Bytes_ expected = quantized(values, storage);
    Bytes_ bytes(expected.size());
    quantize(bf16, storage, {}, bytes);
    EXPECT_TRUE(bytes == expected) << text_of(storage);
    std::vector<float> decoded(values.size()), sums(values.size(), 1.0f);
    std::vector<Bf16Bits> rounded(values.size());
    dequantize(bytes, storage, decoded);
    dequantize(bytes, storage, rounded);
    dequantize_add(bytes, storage, sums);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], bf16_of(decoded[i])) << text_of(storage);
      ASSERT_EQ(sums[i], 1.0f + decoded[i]) << text_of(storage);
    }
  }
}

/// Largest gap between neighbouring values of a format, in units of the scale.
double widest_gap(NumberFormat format) {
  std::vector<double> values;
  for (const double value : reference_values(format))
    if (!std::isnan(value)) values.push_back(value);
  std::ranges::sort(values);
  double gap = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) gap = std::max(gap, values[i + 1] - values[i]);
  return gap;
}

TEST(Quantize, ErrorIsAtMostHalfAGapOfTheBlock) {
  for (const Storage& requested : all_storages(32)) {
    const Storage storage = with_fixed_blocks(requested);
    const bool tensor_or_floor_scale = storage.format == NumberFormat::mxfp4;  // saturates above 6 by its specification
    const bool narrow_scale = storage.scale == ScaleFormat::e4m3 && storage.format != NumberFormat::nvfp4;
    if (tensor_or_floor_scale || narrow_scale) continue;
    const std::vector<float> values = random_values(333, 7), decoded = round_trip(values, requested);
    // A power of two is up to twice the scale needed; BF16 up to 2^-7 and E4M3 up to 2^-3 above it.
    const double slack =
        storage.scale == ScaleFormat::e8m0 ? 2.0 : (storage.scale == ScaleFormat::e4m3 ? 1.126 : 1.008);
    for (std::size_t start = 0; start < values.size(); start += static_cast<std::size_t>(storage.block)) {
      const std::size_t end = std::min(start + static_cast<std::size_t>(storage.block), values.size());
      double lowest = values[start], highest = values[start], largest = 0;
      for (std::size_t i = start; i < end; ++i) {
        lowest = std::min<double>(lowest, values[i]);
        highest = std::max<double>(highest, values[i]);
        largest = std::max<double>(largest, std::abs(values[i]));
      }
      const double minimum_slack = is_affine(storage.format) ? largest / 128 : 0;  // the minimum rounded down to BF16
      const double range = is_affine(storage.format) ? highest - lowest + minimum_slack : largest;
      const double step = range / reference_largest(storage.format) * slack * widest_gap(storage.format);
      for (std::size_t i = start; i < end; ++i)
        EXPECT_LE(std::abs(decoded[i] - values[i]), step / 2 * 1.0001 + 1e-12) << text_of(storage) << " element " << i;
    }
  }
}

TEST(Quantize, ANumberThatIsNotFinitePoisonsItsBlockOnly) {
  for (const Storage& requested : all_storages(32))
    for (const float bad : {kNotANumber, kInfinite, -kInfinite}) {
      const Storage storage = with_fixed_blocks(requested);
      std::vector<float> values(static_cast<std::size_t>(3 * storage.block), 1.0f);
      const std::vector<float> clean = round_trip(values, requested);
      values[static_cast<std::size_t>(storage.block) + 5] = bad;
      const std::vector<float> decoded = round_trip(values, requested);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool poisoned = i / static_cast<std::size_t>(storage.block) == 1;
        EXPECT_EQ(std::isnan(decoded[i]), poisoned) << text_of(storage) << " element " << i;
        if (!poisoned) {
          EXPECT_EQ(decoded[i], clean[i]) << text_of(storage);
        }
      }
    }
}

TEST(Quantize, ZerosStayZeros) {
  for (const Storage& storage : all_storages(16))
    for (const float decoded : round_trip(std::vector<float>(37, 0.0f), storage))
      EXPECT_EQ(decoded, 0.0f) << text_of(storage);
}

/// Below 2^-126 times the largest code a block becomes zeros (affine: its minimum); the error is below the input.
TEST(Quantize, DenormalsBecomeZerosOrTheMinimum) {
  const float denormal = 1e-40f;
  for (const Storage& storage : all_storages(16)) {
    std::vector<float> values(32, denormal);
    values[3] = -denormal;
    for (const float decoded : round_trip(values, storage)) {
      EXPECT_TRUE(std::isfinite(decoded)) << text_of(storage);
      EXPECT_LE(std::abs(decoded), 2 * denormal) << text_of(storage);
    }
  }
}

TEST(Quantize, TheLargestNumbersStayFinite) {
  for (const Storage& requested : all_storages(16)) {
    const Storage storage = with_fixed_blocks(requested);
    std::vector<float> values(2 * static_cast<std::size_t>(storage.block), 0.0f);
    values[0] = kLargestFloat;
    values[static_cast<std::size_t>(storage.block)] = -kLargestFloat;
    const std::vector<float> decoded = round_trip(values, requested);
    for (const float value : decoded) EXPECT_TRUE(std::isfinite(value)) << text_of(storage);
    const bool scale_ends_at_448 = storage.scale == ScaleFormat::e4m3 && storage.format != NumberFormat::nvfp4;
    if (scale_ends_at_448) continue;
    EXPECT_GE(decoded[0], 0.5f * kLargestFloat) << text_of(storage);
    EXPECT_LE(decoded[static_cast<std::size_t>(storage.block)], -0.5f * kLargestFloat) << text_of(storage);
  }
}

TEST(Quantize, AnAffineBlockThatSpansMoreThanTheLargestNumberIsNotFinite) {
  std::vector<float> values(16, kLargestFloat);
  values[3] = -kLargestFloat;
  for (const float value : round_trip(values, {NumberFormat::uint4, 16, ScaleFormat::bf16}))
    EXPECT_TRUE(std::isnan(value));
}

TEST(Quantize, UsesExactlyTheStatedBytesAndNoOthers) {
  for (const Storage& storage : all_storages(24))
    for (std::int64_t count = 0; count <= 60; ++count) {
      const std::vector<float> values = random_values(count, 9);
      const auto bytes = static_cast<std::size_t>(storage_bytes(storage, count).value);
      EXPECT_EQ(quantized_layout(storage, count).bytes, static_cast<std::int64_t>(bytes));
      Bytes_ guarded(bytes + 16, std::byte{0x5a});
      quantize(values, storage, {}, std::span(guarded).first(bytes));
      for (std::size_t i = bytes; i < guarded.size(); ++i) EXPECT_EQ(guarded[i], std::byte{0x5a}) << text_of(storage);
      std::vector<float> decoded(values.size() + 8, 123.0f);
      dequantize(std::span(guarded).first(bytes), storage, std::span(decoded).first(values.size()));
      for (std::size_t i = values.size(); i < decoded.size(); ++i) EXPECT_EQ(decoded[i], 123.0f) << text_of(storage);
    }
}

// --- stochastic rounding ------------------------------------------------------------------------------------------

/// 0.3 of a step above a code, n = 40000 draws: the mean's standard error is sqrt(0.21 / n) = 0.0023 steps. Five of
/// them are allowed, which a right generator exceeds with probability 6e-7; the seed is fixed.
TEST(StochasticRounding, IsUnbiased) {
  for (const NumberFormat format : block_formats()) {
    if (format == NumberFormat::mxfp4 || format == NumberFormat::nvfp4) continue;  // fp4_e2m1's code
    quant::with_format(format, [&](auto core) {
      using Format = decltype(core);
      const bool affine = is_affine(format);
      const std::uint32_t low_code = format == NumberFormat::nf4 ? 8 : 0;
      const float low = Format::decode(low_code), high = Format::decode(low_code + 1);
      const float value = low + 0.3f * (high - low);
      constexpr int kDraws = 40000;
      double sum = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        const quant::Stochastic round{quant::random_bits(42, static_cast<std::uint64_t>(draw))};
        sum += static_cast<double>(Format::decode(Format::encode(value, round)));
      }
      const double step = static_cast<double>(high - low);
      EXPECT_NEAR((sum / kDraws - static_cast<double>(low)) / step, 0.3, 5 * 0.0023) << name_of(format) << affine;
    });
  }
}

TEST(StochasticRounding, LeavesExactValuesAlone) {
  for (const NumberFormat format : block_formats())
    quant::with_format(format, [&](auto core) {
      using Format = decltype(core);
      const std::vector<double> values = reference_values(format);
      for (std::size_t code = 0; code < values.size(); ++code) {
        if (std::isnan(values[code])) continue;
        for (const std::uint32_t random : {0u, 0x80000000u, 0xffffffffu})
          EXPECT_EQ(Format::encode(static_cast<float>(values[code]), quant::Stochastic{random}), code)
              << name_of(format);
      }
    });
}

TEST(StochasticRounding, DependsOnTheElementsPlaceNotOnTheShard) {
  const std::vector<float> values = random_values(512, 3);
  const Storage storage{NumberFormat::int4, 128, ScaleFormat::fp32};
  const std::vector<float> whole = round_trip(values, storage, {Rounding::stochastic, 7, 0});
  const std::vector<float> half(values.begin() + 256, values.end());
  const std::vector<float> second = round_trip(half, storage, {Rounding::stochastic, 7, 256});
  EXPECT_TRUE(std::equal(second.begin(), second.end(), whole.begin() + 256));
  EXPECT_NE(round_trip(half, storage, {Rounding::stochastic, 8, 256}), second);
}

/// Bits of a fair generator over consecutive counters: each of the 32 is set in half of the draws (5 standard errors).
TEST(StochasticRounding, RandomBitsAreBalanced) {
  constexpr int kDraws = 100000;
  std::vector<int> set(32);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::uint32_t bits = quant::random_bits(1, static_cast<std::uint64_t>(draw));
    for (int bit = 0; bit < 32; ++bit) set[static_cast<std::size_t>(bit)] += static_cast<int>(bits >> bit & 1u);
  }
  for (const int count : set) EXPECT_NEAR(count, kDraws / 2, 5 * std::sqrt(kDraws) / 2);
}

// --- refusals -----------------------------------------------------------------------------------------------------

TEST(CheckStorage, RefusesWhatCannotBeExecuted) {
  EXPECT_THROW(check_storage({NumberFormat::bf16}), ConfigError);
  EXPECT_THROW(check_storage({NumberFormat::int4, 8}), ConfigError);
  EXPECT_THROW(check_storage({NumberFormat::int4, 4096}), ConfigError);
  EXPECT_THROW(check_storage({NumberFormat::int4, 100}), ConfigError);
  EXPECT_THROW(check_storage({NumberFormat::uint4, 128, ScaleFormat::e8m0}), ConfigError);
  EXPECT_NO_THROW(check_storage({NumberFormat::nvfp4, 128, ScaleFormat::fp32}));  // its own block and scale are taken
  std::vector<float> values(10);
  Bytes_ bytes(3);
  EXPECT_THROW(quantize(values, Storage{NumberFormat::int4}, {}, bytes), std::logic_error);
}

// Of 2^18 normal numbers the mean square error varies by 0.3 % from draw to draw.
TEST(RelativeError, OfNormalNumbersIsThatOfTheTable) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(1 << 18);
  for (float& value : values) value = normal(generator);
  for (const NumberFormat format : block_formats()) {
    const Storage storage = with_fixed_blocks({format, 128, ScaleFormat::bf16});
    const std::vector<float> decoded = round_trip(values, storage);
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      error += std::pow(static_cast<double>(decoded[i]) - values[i], 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
    EXPECT_NEAR(std::sqrt(error / norm) / relative_error(format), 1.0, 0.01) << name_of(format);
  }
}

TEST(StridedRows, GiveTheBytesOfTheSameRowsSideBySide) {
  const std::vector<float> wide = random_values(37 * 96, 5);
  std::vector<float> part;
  for (std::size_t row = 0; row < 37; ++row) part.insert(part.end(), &wide[row * 96 + 20], &wide[row * 96 + 61]);
  for (const Storage& storage : all_storages(64)) {
    Bytes_ bytes(static_cast<std::size_t>(storage_bytes(storage, 37 * 41).value));
    quantize(StridedRows<float>{&wide[20], 37, 41, 96}, storage, {Rounding::stochastic, 9, 0}, bytes);
    EXPECT_EQ(bytes, quantized(part, storage, {Rounding::stochastic, 9, 0})) << text_of(storage);
  }
}

}  // namespace
}  // namespace reckon
