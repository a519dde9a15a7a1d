// A safetensors file opened for reading numbers of its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "plan/read_only_file.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace reckon {

class SafetensorsFile {
 public:
  /// Throws ConfigError for a file that is missing or not sound.
  explicit SafetensorsFile(const std::filesystem::path& path) : file_(path), header_(read_safetensors_header(file_)) {}

  const SafetensorsHeader& header() const { return header_; }
  const std::string& name() const { return file_.name(); }

  /// Elements of `tensor` from `first` on as FP32. Throws ConfigError when its type is not F64, F32, F16, BF16, I8 or
  /// U8.
  void read(const StoredTensor& tensor, std::int64_t first, std::span<float> into) const;

 private:
  ReadOnlyFile file_;
  SafetensorsHeader header_;
};

/// Whether tensors of this type hold weights.
bool is_floating_type(std::string_view type);

}  // namespace reckon
