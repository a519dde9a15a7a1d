#include "runtime/checkpoint/safetensors_writer.h"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "plan/little_endian.h"

namespace reckon {
namespace {

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, SafetensorsHeader header)
    : header_(std::move(header)), file_(path) {
  file_.append(write_safetensors_header(header_));
}

void SafetensorsWriter::append(std::span<const float> values) {
  const StoredTensor& tensor = header_.tensors.at(tensor_);
  written_ += static_cast<std::int64_t>(values.size());
  if (written_ > tensor.elements()) throw std::logic_error("more values than " + tensor.name + " has elements");
  const bool is_bfloat16 = tensor.type == "BF16", is_byte = type_bytes(tensor.type) == 1;
  if (!is_bfloat16 && !is_byte && std::endian::native == std::endian::little) {
    file_.append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  } else {
    bytes_.clear();
    for (const float value : values)
      if (is_byte) bytes_.push_back(static_cast<char>(static_cast<int>(value)));
      else if (is_bfloat16) append_little_endian(bytes_, to_bfloat16(value));
      else append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
    file_.append(bytes_);
  }
  if (written_ < tensor.elements()) return;
  ++tensor_;
  written_ = 0;
}

FileSeal SafetensorsWriter::finish() {
  if (tensor_ < header_.tensors.size())
    throw std::logic_error("values are missing for " + header_.tensors[tensor_].name);
  return file_.finish();
}

}  // namespace reckon
