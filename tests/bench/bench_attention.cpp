// Processor time of the runtime's attention on CPUs by row length and heads, forward and backward: what a visible pair
// costs in rows of one document each. The shapes are those of a Ulysses rank: queries, keys and values side by side.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <vector>

#include "plan/ring_transfers.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ops/task_attention.h"

namespace {

using namespace reckon;

constexpr std::int64_t kHeadDim = 64;
constexpr double kExtraKeys = 48;  // cost_model/op_cost.cpp

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double fastest_of(int times, const std::function<void()>& work) {
  double fastest = 1e9;
  for (int i = 0; i < times; ++i) {
    const double start = cpu_seconds();
    work();
    fastest = std::min(fastest, cpu_seconds() - start);
  }
  return fastest;
}

void measure(std::int64_t tokens, std::int64_t document, std::int64_t heads, at::ScalarType type) {
  const at::Tensor qkv = at::randn({tokens, 3 * heads * kHeadDim}).to(type);
  const std::int64_t width = heads * kHeadDim;
  const at::Tensor query = qkv.narrow(1, 0, width);
  const KeyValue keys{qkv.narrow(1, width, width), qkv.narrow(1, 2 * width, width)};
  const at::ScalarType wide = accumulator_type(type);
  const AttentionState state{at::zeros({tokens, width}, type), at::empty({heads, tokens}, wide)};
  const at::Tensor gradient = at::randn({tokens, width}).to(type), sums = at::zeros({tokens, 3 * width}, wide);
  const at::Tensor delta = at::empty({heads, tokens}, wide);
  std::vector<AttentionTask> tasks;
  double pairs = 0;
  for (std::int64_t first = 0; first < tokens; first += document) {
    const std::int64_t length = std::min(document, tokens - first);
    tasks.push_back({first, length, first, length, 0});
    pairs += tasks.back().pairs();
  }
  TaskAttention attention(kHeadDim, type);
  const int times = static_cast<int>(std::max(3.0, 6e7 / (pairs * static_cast<double>(heads))));
  const double forward = fastest_of(times, [&] {
    clear(state);
    attention.forward(tasks, query, keys, state);
  });
  const AttentionGradient given{gradient, state.log_sum_exp, delta, sums.narrow(1, 0, width)};
  const KeyValue key_sums{sums.narrow(1, width, width), sums.narrow(1, 2 * width, width)};
  const double backward = fastest_of(times, [&] {
    attention_delta(gradient, state.output, kHeadDim, delta);
    attention.backward(tasks, query, keys, given, key_sums);
  });
  const double all = pairs * static_cast<double>(heads);
  const double priced = (pairs + kExtraKeys * static_cast<double>(tokens)) * static_cast<double>(heads);
  fmt::print("{:6} {:8} {:5} | {:8.3f} {:8.3f} | {:8.3f} {:8.3f}\n", tokens, document, heads, 1e9 * forward / all,
             1e9 * backward / all, 1e9 * forward / priced, 1e9 * backward / priced);
}

}  // namespace

int main(int count, char** arguments) {
  at::set_num_threads(1);
  const bool narrow = count > 1 && std::string_view(arguments[1]) == "bf16";
  fmt::print("{}, ns of one core a pair and head (left), with {:g} keys a query more (right)\n",
             narrow ? "bf16" : "fp32", kExtraKeys);
  fmt::print("{:>6} {:>8} {:>5} | {:>8} {:>8} | {:>8} {:>8}\n", "row", "document", "heads", "forward", "backward",
             "forward", "backward");
  for (const auto& [tokens, document, heads] : {std::array<std::int64_t, 3>{512, 512, 8},
                                                {512, 512, 1},
                                                {1024, 1024, 1},
                                                {2048, 2048, 1},
                                                {4096, 4096, 1},
                                                {4096, 2048, 1},
                                                {4096, 512, 1},
                                                {4096, 128, 1},
                                                {4096, 512, 8}})
    measure(tokens, document, heads, narrow ? at::kBFloat16 : at::kFloat);
  return EXIT_SUCCESS;
}
