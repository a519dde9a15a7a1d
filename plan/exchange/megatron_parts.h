// The parts of the Megatron-LM reader. Private to plan/exchange.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/exchange/foreign_reader.h"
#include "plan/model_spec.h"

namespace reckon {

/// A whole number without which there is no plan; 0 and an error when it is missing.
std::int64_t need_megatron_count(SourceFields& fields, std::string_view name, std::string_view plan_key);

/// `tensor` pads the vocabulary; `sequence` must fit a table of positions.
ModelSpec read_megatron_model(ForeignReading reading, std::int64_t tensor, std::int64_t sequence);

/// Sets precision, gradients, kernels, optimizer and train keys; lists what no key stands for. `replicas`: ranks that
/// reduce gradients together.
void read_megatron_training(ForeignReading reading, std::int64_t replicas);

}  // namespace reckon
