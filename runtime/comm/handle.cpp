#include "runtime/comm/handle.h"

#include <algorithm>

namespace reckon {
namespace {

Seconds between(std::int64_t from, std::int64_t to) {
  return Seconds(static_cast<double>(std::max<std::int64_t>(to - from, 0)) * 1e-9);
}

}  // namespace

OperationTime operation_time(const CallMoments& moments) {
  const std::int64_t met = std::clamp(moments.met, moments.issued, std::max(moments.issued, moments.completed));
  const std::int64_t exposed_until =
      std::clamp(met, moments.wait_began, std::max(moments.wait_began, moments.wait_ended));
  return {between(moments.issued, met), between(met, moments.completed), between(moments.wait_began, exposed_until),
          between(exposed_until, moments.wait_ended)};
}

}  // namespace reckon
