// The header of a safetensors file: 8 bytes with its length (little-endian), then JSON that says of every tensor which
// type and shape it has and where its bytes lie in the rest of the file. Format: github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/read_only_file.h"

namespace reckon {

struct StoredTensor {
  std::string name;
  std::string type;  // F64, F32, F16, BF16, I64, ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes from the start of the file

  std::int64_t elements() const;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;            // in the order of their bytes
  std::map<std::string, std::string> metadata;  // the file's __metadata__

  const StoredTensor* find(std::string_view name) const;
};

/// Bytes of one element; 0 for a type that is not known.
std::int64_t type_bytes(std::string_view type);

/// Reads and checks the header of a file that may come from anywhere: at most 32 MB of JSON, every size computed
/// without overflow, tensors inside the file, side by side without gap or overlap. Throws ConfigError naming file and
/// tensor.
SafetensorsHeader read_safetensors_header(const ReadOnlyFile& file);

/// The first bytes of a file with these tensors one after the other; sets their `begin` and `end`. The data starts at a
/// multiple of 8 bytes.
std::string write_safetensors_header(SafetensorsHeader& header);

}  // namespace reckon
