// A safetensors file written tensor by tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace reckon {

class SafetensorsWriter {
 public:
  /// The tensors (names, shapes, types F32, BF16, I8 or U8) whose values follow, in this order. Throws RunError when
  /// the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, SafetensorsHeader header);

  /// The next values of the tensor that is not complete yet; never beyond its end. BF16 is rounded to nearest even;
  /// values of I8 and U8 are whole numbers in range.
  void append(std::span<const float> values);
  /// Throws std::logic_error while values are missing.
  FileSeal finish();

 private:
  SafetensorsHeader header_;
  DurableFile file_;
  std::size_t tensor_ = 0;  // being written
  std::int64_t written_ = 0;
  std::string bytes_;
};

}  // namespace reckon
