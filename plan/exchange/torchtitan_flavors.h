// Models that TorchTitan calls by name and flavor (torchtitan/models), and what they are called here.
#pragma once

#include <cstdint>
#include <string_view>

namespace reckon {

struct TorchTitanFlavor {
  std::string_view name, flavor;
  std::string_view model;  // a name of configs/models
  std::int64_t layers;
};

inline constexpr TorchTitanFlavor kTorchTitanFlavors[] = {{"llama3", "8B", "llama3.1-8b", 32},
                                                          {"llama3", "70B", "llama3.1-70b", 80},
                                                          {"llama3", "405B", "llama3.1-405b", 126},
                                                          {"llama2", "7B", "llama2-7b", 32},
                                                          {"llama2", "13B", "llama2-13b", 40},
                                                          {"llama2", "70B", "llama2-70b", 80},
                                                          {"deepseek_v3", "16B", "deepseek-v2-lite", 27},
                                                          {"deepseek_v3", "671B", "deepseek-v3", 61},
                                                          {"qwen3", "0.6B", "qwen3-0.6b", 28},
                                                          {"qwen3", "1.7B", "qwen3-1.7b", 28},
                                                          {"qwen3", "8B", "qwen3-8b", 36},
                                                          {"qwen3", "32B", "qwen3-32b", 64},
                                                          {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48},
                                                          {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94}};

/// The smallest model, given by its shape.
inline constexpr std::string_view kTorchTitanDebugModel = "torchtitan-debug";

}  // namespace reckon
