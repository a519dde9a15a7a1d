#include "plan/storage_passes.h"

#include "plan/step_documents.h"

namespace reckon {
namespace {

/// Calls `use(format, bytes)` for every tensor that is stored in fewer bits than it is computed in.
template <class Use>
void for_stored(const OpList& list, const KeptSet& kept, Use use) {
  for (const KeptTensor& tensor : kept.kept) {
    const Tensor& source = list.tensors[static_cast<std::size_t>(tensor.tensor)];
    if (payload_bits(tensor.storage.format) < payload_bits(source.format))
      use(tensor.storage.format, source.bytes() + tensor.bytes);
  }
}

}  // namespace

StorageRates& StorageRates::operator*=(double factor) {
  const auto scale = [factor](StorageTimes& times) {
    times.quantize *= factor;
    times.dequantize *= factor;
  };
  scale(unmeasured);
  for (auto& [format, times] : measured) scale(times);
  return *this;
}

StorageTimes storage_times(const OpList& list, const KeptSet& kept, const StorageRates& rates) {
  StorageTimes sum{Seconds(0.0), Seconds(0.0)};
  for_stored(list, kept, [&](NumberFormat format, Bytes bytes) {
    const auto found = rates.measured.find(format);
    const StorageTimes& rate = found == rates.measured.end() ? rates.unmeasured : found->second;
    sum.quantize += rate.quantize * static_cast<double>(bytes.value);
    sum.dequantize += rate.dequantize * static_cast<double>(bytes.value);
  });
  return sum;
}

StorageUse storage_use(const Plan& plan) {
  StorageUse use;
  const AttentionWork work = planned_attention_work(plan);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::head}) {
    const OpList list = section_ops(plan, section, work);
    const std::int64_t times = section == Section::dense_layer ? plan.model.layers : 1;
    for_stored(list, kept_tensors(plan, list, Recompute::none, 0), [&](NumberFormat format, Bytes bytes) {
      use.bytes += bytes * times;
      use.formats.insert(format);
    });
  }
  return use;
}

}  // namespace reckon
