// Quantize and dequantize on one thread beside memcpy. bytes_per_second counts the bytes read and written, for memcpy
// too; each format's share of memcpy is its rate over the memcpy line's.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
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

void copy(benchmark::State& state) {
  std::vector<std::byte> from(kElements * 4, std::byte{1}), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(from.size()));
}
BENCHMARK(copy)->Name("memcpy")->Unit(benchmark::kMillisecond);

template <class Value>
void quantize_values(benchmark::State& state, NumberFormat format, Rounding rounding) {
  const Storage storage{format};
  const std::vector<Value> values = input<Value>();
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, kElements).value));
  for (auto _ : state) {
    quantize(values, storage, {rounding, 1, 0}, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(values.size() * sizeof(Value) + bytes.size()));
}

template <class Value>
void dequantize_values(benchmark::State& state, NumberFormat format) {
  const Storage storage{format};
  std::vector<Value> values = input<Value>();
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(storage, kElements).value));
  quantize(values, storage, {}, bytes);
  for (auto _ : state) {
    dequantize(bytes, storage, std::span<Value>(values));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(values.size() * sizeof(Value) + bytes.size()));
}

void register_format(NumberFormat format) {
  const std::string name(name_of(format));
  const auto nearest = Rounding::nearest_even;
  benchmark::RegisterBenchmark(("quantize fp32 to " + name).c_str(), quantize_values<float>, format, nearest)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("quantize bf16 to " + name).c_str(), quantize_values<Bf16Bits>, format, nearest)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("dequantize fp32 from " + name).c_str(), dequantize_values<float>, format)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("dequantize bf16 from " + name).c_str(), dequantize_values<Bf16Bits>, format)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const NumberFormat format : all_number_formats())
    if (is_block_scaled(format)) register_format(format);
  benchmark::RegisterBenchmark("quantize fp32 to int4 stochastic", quantize_values<float>, NumberFormat::int4,
                               Rounding::stochastic)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
