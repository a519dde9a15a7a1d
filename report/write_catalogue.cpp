#include "report/write_catalogue.h"

#include <fmt/format.h>

#include <set>

#include "plan/choices.h"
#include "plan/parameters.h"
#include "report/checked_json.h"
#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr std::string_view kSchema = "reckon.catalogue/1";
constexpr int kShownBlock = 128;  // block of the bits per element in the table of formats

std::int64_t elements_of(const std::vector<Parameter>& parameters) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.elements();
  return sum;
}

std::string attention_kind(const ModelSpec& model) {
  if (model.is_mla()) return fmt::format("MLA, rank {}", model.mla.kv_lora_rank);
  if (model.kv_heads == model.heads) return fmt::format("{} heads", model.heads);
  return fmt::format("{} heads, {} KV", model.heads, model.kv_heads);
}

std::string ffn_kind(const ModelSpec& model) {
  if (!model.is_moe()) return fmt::format("{}{}", model.ffn_hidden, model.gated_ffn ? " gated" : "");
  return fmt::format("{} of {} experts, {}", model.moe.experts_per_token, model.moe.experts,
                     model.moe.expert_ffn_hidden);
}

Json model_entry(const ModelSpec& model) {
  return {{"name", model.name},
          {"family", model.family},
          {"parameters", count_parameters(model)},
          {"active_parameters", count_active_parameters(model)},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"ffn_hidden", model.ffn_hidden},
          {"vocabulary", model.vocabulary},
          {"experts", model.moe.experts}};
}

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{:.4g} GB/s", rate.value / 1e9);
}

std::string peak_text(const DeviceSpec& device, NumberFormat format) {
  const auto peak = device.peak.find(format);
  return peak == device.peak.end() ? "-" : fmt::format("{:.4g}", peak->second.value / 1e12);
}

/// One calibrated fit: how far it misses samples that were kept from it (of few: its own).
struct FitError {
  std::string kind;
  double relative_error;
};

std::vector<FitError> fit_errors(const TimeConstants& time) {
  std::vector<FitError> all;
  const auto add = [&](const std::string& kind, const auto& fit) {
    if (fit.provenance == Provenance::calibrated) all.push_back({kind, fit.relative_error});
  };
  for (const auto& [pass, fit] : time.gemm) add(fmt::format("product, {}", name_of(pass)), fit);
  add("attention, forward", time.attention_forward);
  add("attention, backward", time.attention_backward);
  add("op bound by memory", time.memory_bound);
  add("optimizer", time.optimizer);
  for (const CollectiveFit& fit : time.collectives)
    add(fmt::format("{}, {} ranks{}", name_of(fit.collective), fit.ranks_per_node,
                    fit.siblings > 1 ? fmt::format(" in {} groups", fit.siblings) : ""),
        fit);
  return all;
}

Json hardware_entry(const HardwareSpec& hardware) {
  Json fits = Json::array();
  for (const FitError& fit : fit_errors(hardware.time))
    fits.push_back({{"kind", fit.kind}, {"relative_error", fit.relative_error}});
  Json peaks = Json::object();
  for (const auto& [format, peak] : hardware.device.peak) peaks[std::string(name_of(format))] = peak.value;
  return {{"name", hardware.name},
          {"aliases", hardware.aliases},
          {"source", hardware.source},
          {"device", hardware.device.name},
          {"memory_bytes", hardware.device.memory.value},
          {"memory_bytes_per_second", hardware.device.memory_bandwidth.value},
          {"peak_flops_per_second", peaks},
          {"devices_per_node", hardware.devices_per_node},
          {"intra_node_bytes_per_second", hardware.intra_node.bandwidth.value},
          {"inter_node_bytes_per_second", hardware.inter_node.bandwidth.value},
          {"correction_factor", hardware.time.global_factor},
          {"fits", fits},
          {"provenance", hardware.provenance}};
}

std::string link_text(const LinkSpec& link) {
  return fmt::format("{} per device, {} latency{}", rate_text(link.bandwidth), with_unit(link.latency),
                     link.switched ? "" : ", shared by the node");
}

double bits_per_element(NumberFormat format, int block) {
  const std::int64_t elements = 1 << 20;
  return 8.0 * static_cast<double>(storage_bytes({format, block, ScaleFormat::bf16}, elements).value) / elements;
}

std::string document(const char* kind, Json entries) {
  const Json json = {{"schema", kSchema}, {"kind", kind}, {"entries", std::move(entries)}};
  return document_text(json);
}

}  // namespace

std::string models_text(const std::vector<ModelSpec>& models, const TextStyle& style) {
  Table table({"model", "parameters", "active", "layers", "hidden", "FFN", "attention", "vocabulary"});
  for (const ModelSpec& model : models) {
    const auto all = static_cast<double>(count_parameters(model));
    const auto active = static_cast<double>(count_active_parameters(model));
    table.add({model.name, compact(all), active == all ? "all" : compact(active), grouped(model.layers),
               grouped(model.hidden), ffn_kind(model), attention_kind(model), grouped(model.vocabulary)});
  }
  return table.text(style);
}

std::string models_json(const std::vector<ModelSpec>& models) {
  Json entries = Json::array();
  for (const ModelSpec& model : models) entries.push_back(model_entry(model));
  return document("models", std::move(entries));
}

std::string model_text(const ModelSpec& model, const TextStyle& style) {
  Table shape({"", ""});
  shape.add({"family", model.family});
  shape.add({"layers", grouped(model.layers)});
  shape.add({"hidden", grouped(model.hidden)});
  shape.add({"attention", fmt::format("{} of {}", attention_kind(model), model.head_dim)});
  shape.add({"FFN", ffn_kind(model)});
  shape.add({"vocabulary", fmt::format("{}{}", grouped(model.vocabulary), model.tied_head ? ", tied head" : "")});

  std::int64_t layers = 0;
  std::set<std::int64_t> sizes;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::int64_t elements = elements_of(layer_parameters(model, layer));
    layers += elements;
    sizes.insert(elements);
  }
  std::string one_layer;
  for (std::int64_t elements : sizes) one_layer += (one_layer.empty() ? "" : " or ") + grouped(elements);
  Table counts({"part", "parameters"});
  counts.add({"embedding", grouped(elements_of(embedding_parameters(model)))});
  counts.add({"one layer", one_layer});
  counts.add({"all layers", grouped(layers)});
  counts.add({"final norm and head", grouped(elements_of(head_parameters(model)))});
  counts.add({Cell("all", Paint::bold), Cell(grouped(count_parameters(model)), Paint::bold)});
  if (count_active_parameters(model) != count_parameters(model))
    counts.add({"used by one token", grouped(count_active_parameters(model))});
  return fmt::format("{}{}\n{}", painted(model.name, Paint::bold, style), shape.text(style), counts.text(style));
}

std::string hardware_list_text(const std::vector<HardwareSpec>& hardware, const TextStyle& style) {
  Table table({"hardware", "devices a node", "memory GiB", "bf16 TFLOP/s", "memory", "in the node", "between nodes"});
  for (const HardwareSpec& machine : hardware) {
    table.add({machine.name, grouped(machine.devices_per_node), gib(machine.device.memory),
               peak_text(machine.device, NumberFormat::bf16), rate_text(machine.device.memory_bandwidth),
               rate_text(machine.intra_node.bandwidth), rate_text(machine.inter_node.bandwidth)});
  }
  return table.text(style);
}

std::string hardware_list_json(const std::vector<HardwareSpec>& hardware) {
  Json entries = Json::array();
  for (const HardwareSpec& machine : hardware) entries.push_back(hardware_entry(machine));
  return document("hardware", std::move(entries));
}

std::string hardware_text(const HardwareSpec& hardware, const TextStyle& style) {
  Table table({"", ""}, {true, true});
  table.add({"device", fmt::format("{} ({}), {} a node", hardware.device.name, hardware.device.vendor,
                                   hardware.devices_per_node)});
  for (const auto& [format, peak] : hardware.device.peak)
    table.add({fmt::format("peak {}", name_of(format)), fmt::format("{:.4g} TFLOP/s dense", peak.value / 1e12)});
  table.add({"memory",
             fmt::format("{} at {}", with_unit(hardware.device.memory), rate_text(hardware.device.memory_bandwidth))});
  table.add({"in the node", link_text(hardware.intra_node)});
  table.add({"between nodes", link_text(hardware.inter_node)});
  table.add({"context, a process", with_unit(hardware.context)});
  table.add({"one communicator", with_unit(hardware.communicator)});
  table.add(
      {"measured", fmt::format("{} matrix products, {} ops, {} collective fits", hardware.time.gemm_samples.size(),
                               hardware.time.op_samples.size(), hardware.time.collectives.size())});
  if (!hardware.source.empty()) table.add({"source", hardware.source});
  for (const auto& [key, value] : hardware.provenance) table.add({key, value});
  std::string text = painted(hardware.name, Paint::bold, style) + table.text(style);
  const std::vector<FitError> fits = fit_errors(hardware.time);
  if (fits.empty()) return text;
  Table errors({"fit", "error on samples held out"});
  for (const FitError& fit : fits) errors.add({fit.kind, percent(fit.relative_error)});
  return text + "\n" + errors.text(style);
}

std::string formats_text(const TextStyle& style) {
  Table table(
      {"format", "payload bits", fmt::format("bits an element (block {}, bf16 scales)", kShownBlock), "block-scaled"});
  for (NumberFormat format : all_number_formats())
    table.add({std::string(name_of(format)), grouped(payload_bits(format)),
               fmt::format("{:.3f}", bits_per_element(format, kShownBlock)), is_block_scaled(format) ? "yes" : "no"});
  return table.text(style);
}

std::string formats_json() {
  Json entries = Json::array();
  for (NumberFormat format : all_number_formats())
    entries.push_back({{"name", name_of(format)},
                       {"payload_bits", payload_bits(format)},
                       {"bits_per_element", bits_per_element(format, kShownBlock)},
                       {"block_scaled", is_block_scaled(format)}});
  return document("formats", std::move(entries));
}

std::string names_json(const std::string& kind, const std::vector<std::string>& names) {
  Json entries = Json::array();
  for (const std::string& name : names) entries.push_back({{"name", name}});
  return document(kind.c_str(), std::move(entries));
}

}  // namespace reckon
