// Number format names -> the element formats of quant_core.h.
#pragma once

#include <stdexcept>

#include "plan/number_format.h"
#include "runtime/quant/quant_core.h"

namespace reckon::quant {

/// Calls `action` with an object of the element format that stores `format`'s codes.
/// Inlined into its caller, so that the action is compiled for the caller's instruction set.
template <class Action>
[[gnu::always_inline]] inline auto with_format(NumberFormat format, Action action) {
  switch (format) {
    case NumberFormat::int8: return action(SymmetricInteger<8>{});
    case NumberFormat::int7: return action(SymmetricInteger<7>{});
    case NumberFormat::int6: return action(SymmetricInteger<6>{});
    case NumberFormat::int5: return action(SymmetricInteger<5>{});
    case NumberFormat::int4: return action(SymmetricInteger<4>{});
    case NumberFormat::int3: return action(SymmetricInteger<3>{});
    case NumberFormat::int2: return action(SymmetricInteger<2>{});
    case NumberFormat::uint8: return action(AffineInteger<8>{});
    case NumberFormat::uint7: return action(AffineInteger<7>{});
    case NumberFormat::uint6: return action(AffineInteger<6>{});
    case NumberFormat::uint5: return action(AffineInteger<5>{});
    case NumberFormat::uint4: return action(AffineInteger<4>{});
    case NumberFormat::uint3: return action(AffineInteger<3>{});
    case NumberFormat::uint2: return action(AffineInteger<2>{});
    case NumberFormat::fp8_e4m3: return action(Fp8E4M3{});
    case NumberFormat::fp8_e5m2: return action(Fp8E5M2{});
    case NumberFormat::fp6_e2m3: return action(Fp6E2M3{});
    case NumberFormat::fp6_e3m2: return action(Fp6E3M2{});
    case NumberFormat::fp4_e2m1:
    case NumberFormat::mxfp4:
    case NumberFormat::nvfp4: return action(Fp4E2M1{});
    case NumberFormat::nf4: return action(NormalFloat4{});
    default: throw std::logic_error("not a block-scaled format");
  }
}

inline ScaleType scale_type(ScaleFormat scale) {
  return static_cast<ScaleType>(scale);
}
static_assert(static_cast<int>(ScaleFormat::e4m3) == static_cast<int>(ScaleType::e4m3) &&
              static_cast<int>(ScaleFormat::bf16) == static_cast<int>(ScaleType::bf16));

}  // namespace reckon::quant
