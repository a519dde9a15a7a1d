// Quantize and dequantize on one thread, in turns with memcpy of a buffer larger than the last-level cache, so that a
// machine that slows down slows both. bytes_per_second counts the bytes read and written, for memcpy too; of_memcpy is
// the format's rate over memcpy's. NVFP4 reads its input twice (largest magnitude first): once is counted.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/quant/quantize.h"

namespace {

using namespace reckon;

constexpr std::int64_t kElements = std::int64_t{1} << 24;  // larger than the last-level cache

template <class Value>
std::vector<Value> input();

template <>
std::vector<float> input() {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kElements);
  for (float& value : values) value = normal(generator);
  return values;
}

template <>
std::vector<Bf16Bits> input() {
  std::vector<Bf16Bits> values;
  for (const float value : input<float>())
    values.push_back(static_cast<Bf16Bits>(__builtin_bit_cast(std::uint32_t, value) >> 16));
  return values;
}

using Clock = std::chrono::steady_clock;

double seconds_of(auto&& action) {
  const Clock::time_point start = Clock::now();
  action();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// `action` touches `bytes` bytes.
void beside_memcpy(benchmark::State& state, std::size_t bytes, auto&& action) {
  static const std::vector<std::byte> from(kElements * 4, std::byte{1});
  static std::vector<std::byte> to(from.size());
  double copying = 0, working = 0;
  for (auto _ : state) {
    copying += seconds_of([] { std::memcpy(to.data(), from.data(), from.size()); });
    const double seconds = seconds_of(action);
    working += seconds;
    state.SetIterationTime(seconds);
  }
  const auto processed = static_cast<double>(bytes), copied = 2 * static_cast<double>(from.size());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["of_memcpy"] = processed / working / (copied / copying);
}

template <class Value>
void quantize_values(benchmark::State& state, Storage storage, Rounding rounding) {
  const std::vector<Value> values = input<Value>();
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, kElements).value));
  beside_memcpy(state, values.size() * sizeof(Value) + bytes.size(), [&] {
    quantize(values, storage, {rounding, 1, 0}, bytes);
  });
}

template <class Value>
void dequantize_values(benchmark::State& state, Storage storage) {
  std::vector<Value> values = input<Value>();
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, kElements).value));
  quantize(values, storage, {}, bytes);
  beside_memcpy(state, values.size() * sizeof(Value) + bytes.size(),
                [&] { dequantize(bytes, storage, std::span<Value>(values)); });
}

void add(const std::string& name, auto function, auto... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), function, arguments...)->Unit(benchmark::kMillisecond)->UseManualTime();
}

void add_storage(const std::string& name, Storage storage) {
  add("quantize fp32 to " + name, quantize_values<float>, storage, Rounding::nearest_even);
  add("quantize bf16 to " + name, quantize_values<Bf16Bits>, storage, Rounding::nearest_even);
  add("dequantize fp32 from " + name, dequantize_values<float>, storage);
  add("dequantize bf16 from " + name, dequantize_values<Bf16Bits>, storage);
}

void add_format(NumberFormat format) {
  const std::string name(name_of(format));
  const bool fixed_block = with_fixed_blocks({format, 32}).block == with_fixed_blocks({format, 64}).block;
  if (fixed_block || payload_bits(format) != 4) return add_storage(name, {format});
  for (const int block : {32, 64, 128, 256}) add_storage(name + " block " + std::to_string(block), {format, block});
}

}  // namespace

int main(int argc, char** argv) {
  for (const NumberFormat format : all_number_formats())
    if (is_block_scaled(format)) add_format(format);
  add("quantize fp32 to int4 stochastic", quantize_values<float>, Storage{NumberFormat::int4}, Rounding::stochastic);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
