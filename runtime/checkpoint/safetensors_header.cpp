#include "runtime/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "plan/errors.h"
#include "plan/little_endian.h"
#include "runtime/checkpoint/json_text.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostHeaderBytes = 32'000'000;  // a hundred thousand tensors and more
constexpr const char* kMetadata = "__metadata__";

/// Reads one header; every message names the file and what it is about.
class HeaderReader {
 public:
  explicit HeaderReader(const ReadOnlyFile& file) : file_(file) {}

  SafetensorsHeader read() {
    const std::string text = header_text();
    data_ = 8 + static_cast<std::int64_t>(text.size());
    const Json json = parse_json(text, file_.name());
    if (!json.is_object()) refuse("the header is no JSON object");
    SafetensorsHeader header;
    for (const auto& [name, value] : json.items()) {
      if (name == kMetadata) header.metadata = metadata(value);
      else header.tensors.push_back(tensor(name, value));
    }
    require_side_by_side(header.tensors);
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError({{"is no sound safetensors file: " + what, file_.name(), 0, 0, {}}});
  }

  std::string header_text() const {
    if (file_.size() < 8) refuse(fmt::format("it has {} bytes, the header's length alone takes 8", file_.size()));
    const auto length = read_little_endian<std::uint64_t>(file_.read_text(0, 8).data());
    if (length > static_cast<std::uint64_t>(std::min(kMostHeaderBytes, file_.size() - 8)))
      refuse(fmt::format("its header claims {} bytes of a file of {} (at most {} are read)", length, file_.size(),
                         kMostHeaderBytes));
    return file_.read_text(8, static_cast<std::int64_t>(length));
  }

  std::map<std::string, std::string> metadata(const Json& value) const {
    std::map<std::string, std::string> entries;
    if (!value.is_object()) refuse(fmt::format("{} is no JSON object", kMetadata));
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        refuse(fmt::format("{} holds something that is no text under {}", kMetadata, shown_name(key)));
      entries[key] = text.get<std::string>();
    }
    return entries;
  }

  StoredTensor tensor(const std::string& name, const Json& value) const {
    const auto fail = [&](const std::string& what) { refuse(fmt::format("tensor {} {}", shown_name(name), what)); };
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!value.is_object() || !value.contains(key)) fail(fmt::format("has no {}", key));
    StoredTensor tensor{name, {}, {}, 0, 0};
    if (!value["dtype"].is_string()) fail("has a dtype that is no text");
    tensor.type = value["dtype"].get<std::string>();
    const std::int64_t bytes = type_bytes(tensor.type);
    if (bytes == 0) fail(fmt::format("has the unknown dtype {}", shown_name(tensor.type)));
    if (!whole_numbers(value["shape"], tensor.shape)) fail("has a shape that is no list of whole numbers");
    std::vector<std::int64_t> offsets;
    if (!whole_numbers(value["data_offsets"], offsets) || offsets.size() != 2 || offsets[0] > offsets[1])
      fail("has data_offsets that are no two whole numbers, the smaller first");
    if (offsets[1] > file_.size() - data_)
      fail(fmt::format("ends at byte {} of {} bytes of data", offsets[1], file_.size() - data_));
    std::int64_t needed = bytes;
    for (const std::int64_t extent : tensor.shape) {
      if (extent > 0 && needed > std::numeric_limits<std::int64_t>::max() / extent) fail("has an impossible shape");
      needed *= extent;
    }
    if (needed != offsets[1] - offsets[0])
      fail(fmt::format("needs {} bytes for its shape, but has {}", needed, offsets[1] - offsets[0]));
    tensor.begin = data_ + offsets[0];
    tensor.end = data_ + offsets[1];
    return tensor;
  }

  static bool whole_numbers(const Json& value, std::vector<std::int64_t>& numbers) {
    if (!value.is_array()) return false;
    for (const Json& entry : value) {
      if (!entry.is_number_unsigned() ||
          entry.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return false;
      numbers.push_back(entry.get<std::int64_t>());
    }
    return true;
  }

  /// A gap could hide data, an overlap would give one tensor another's values.
  void require_side_by_side(std::vector<StoredTensor>& tensors) const {
    std::ranges::sort(tensors, [](const StoredTensor& a, const StoredTensor& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::int64_t at = data_;
    std::string before = "the header";
    for (const StoredTensor& tensor : tensors) {
      if (tensor.begin < at) refuse(fmt::format("tensor {} overlaps {}", shown_name(tensor.name), before));
      if (tensor.begin > at)
        refuse(fmt::format("{} bytes before tensor {} belong to none", tensor.begin - at, shown_name(tensor.name)));
      at = tensor.end;
      before = "tensor " + shown_name(tensor.name);
    }
    if (at != file_.size()) refuse(fmt::format("the last {} bytes belong to no tensor", file_.size() - at));
  }

  const ReadOnlyFile& file_;
  std::int64_t data_ = 0;  // where it begins
};

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

const StoredTensor* SafetensorsHeader::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &StoredTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::int64_t type_bytes(std::string_view type) {
  for (const std::string_view one : {"U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2"})
    if (type == one) return 1;
  for (const std::string_view two : {"U16", "I16", "F16", "BF16"})
    if (type == two) return 2;
  for (const std::string_view four : {"U32", "I32", "F32"})
    if (type == four) return 4;
  for (const std::string_view eight : {"U64", "I64", "F64"})
    if (type == eight) return 8;
  return 0;
}

SafetensorsHeader read_safetensors_header(const ReadOnlyFile& file) {
  return HeaderReader(file).read();
}

std::string write_safetensors_header(SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  std::int64_t at = 0;
  for (StoredTensor& tensor : header.tensors) {
    tensor.begin = at;
    at += tensor.elements() * type_bytes(tensor.type);
    tensor.end = at;
    json[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  append_little_endian(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
  for (StoredTensor& tensor : header.tensors) {
    tensor.begin += static_cast<std::int64_t>(bytes.size());
    tensor.end += static_cast<std::int64_t>(bytes.size());
  }
  return bytes;
}

}  // namespace reckon
