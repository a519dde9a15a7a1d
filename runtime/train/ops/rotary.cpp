#include "runtime/train/ops/rotary.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "runtime/train/kernels/device/rope.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

namespace {

/// LLaMA 3.1's rule: wavelengths above original / low are stretched by the factor, those below original / high stay,
/// and between them the share that is stretched falls linearly. `linear` stretches all.
template <class T>
T scaled_frequency(const ModelSpec& model, T frequency) {
  const T stretched = frequency / static_cast<T>(model.rope_scaling_factor);
  if (model.rope_scaling == "linear") return stretched;
  if (model.rope_scaling != "llama3") return frequency;
  const T original = static_cast<T>(model.rope_original_positions);
  const T low = static_cast<T>(model.rope_low_frequency_factor),
          high = static_cast<T>(model.rope_high_frequency_factor);
  const T wavelength = static_cast<T>(2.0 * std::numbers::pi) / frequency;
  if (wavelength > original / low) return stretched;
  if (wavelength < original / high) return frequency;
  const T kept = (original / wavelength - low) / (high - low);
  return (T(1) - kept) * stretched + kept * frequency;
}

}  // namespace

RotaryTable rotary_table(const ModelSpec& model, std::int64_t positions, at::ScalarType accumulator) {
  RotaryTable table;
  table.rotated =
      static_cast<std::int64_t>(std::llround(model.rope_fraction * static_cast<double>(model.head_dim))) / 2 * 2;
  const std::int64_t half = table.rotated / 2;
  table.cosine = at::empty({positions, half}, accumulator);
  table.sine = at::empty({positions, half}, accumulator);
  with_element_type(table.cosine, [&]<class T>(T, auto...) {  // of the host
    if constexpr (!std::is_same_v<T, kernels::BFloat16>) {
      for (std::int64_t i = 0; i < half; ++i) {
        // The frequency and the angle are rounded as the reference implementations do.
        const T exponent = static_cast<T>(2 * i) / static_cast<T>(table.rotated);
        const T frequency =
            scaled_frequency(model, T(1) / static_cast<T>(std::pow(static_cast<T>(model.rope_theta), exponent)));
        for (std::int64_t position = 0; position < positions; ++position) {
          const T angle = static_cast<T>(position) * frequency;
          pointer<T>(table.cosine)[position * half + i] = std::cos(angle);
          pointer<T>(table.sine)[position * half + i] = std::sin(angle);
        }
      }
    }
  });
  return table;
}

void rotate_heads(const at::Tensor& x, std::int64_t heads, std::int64_t head_dim, const at::Tensor& positions,
                  const RotaryTable& table, int direction) {
  with_element_type(x, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    kernels::rotate<T>(pointer<T>(x), x.size(0), x.stride(0), heads, head_dim, table.rotated,
                       pointer<std::int32_t>(positions), pointer<A>(table.cosine), pointer<A>(table.sine), direction,
                       place...);
  });
}

}  // namespace reckon
