// Hardware files: the whole HardwareSpec as YAML, read strictly and written back without loss.
#include <fmt/format.h>

#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

template <class T>
void read_positive(YamlReader& reader, std::string_view key, T& value) {
  if (reader.read(key, value) && !(value > T{})) reader.error(key, fmt::format("'{}' must be above 0", key));
}

template <class T>
void read_not_negative(YamlReader& reader, std::string_view key, T& value) {
  if (reader.read(key, value) && value < T{}) reader.error(key, fmt::format("'{}' must not be negative", key));
}

template <class T>
void require_positive(YamlReader& reader, std::string_view key, T& value) {
  if (reader.require(key, value) && !(value > T{})) reader.error(key, fmt::format("'{}' must be above 0", key));
}

template <class T>
void require_not_negative(YamlReader& reader, std::string_view key, T& value) {
  if (reader.require(key, value) && value < T{}) reader.error(key, fmt::format("'{}' must not be negative", key));
}

void read_peak(YamlReader& reader, DeviceSpec& device) {
  auto peak = reader.child("peak");
  if (!peak) return;
  for (const NumberFormat format : all_number_formats()) {
    FlopsPerSecond rate;
    read_positive(*peak, name_of(format), rate);
    if (peak->has(name_of(format))) device.peak[format] = rate;
  }
  peak->finish();
}

void read_device(YamlReader reader, DeviceSpec& device) {
  reader.require("name", device.name);
  reader.read("vendor", device.vendor);
  read_peak(reader, device);
  if (!reader.has("peak")) reader.error("peak", "the key 'peak' is missing: dense compute rate by number format");
  require_positive(reader, "memory", device.memory);
  require_positive(reader, "memory_bandwidth", device.memory_bandwidth);
  read_not_negative(reader, "multiprocessors", device.multiprocessors);
  reader.read("is_cpu", device.is_cpu);
  reader.finish();
}

void read_link(YamlReader reader, LinkSpec& link) {
  require_positive(reader, "bandwidth", link.bandwidth);
  require_not_negative(reader, "latency", link.latency);
  reader.read("switched", link.switched);
  reader.finish();
}

void read_fit(YamlReader reader, OpFit& fit) {
  read_not_negative(reader, "flops_factor", fit.flops_factor);
  read_not_negative(reader, "bytes_factor", fit.bytes_factor);
  read_not_negative(reader, "constant", fit.constant);
  read_not_negative(reader, "relative_error", fit.relative_error);
  reader.read("provenance", fit.provenance);
  reader.finish();
}

CollectiveFit read_collective(YamlReader reader) {
  CollectiveFit fit;
  reader.require("collective", fit.collective);
  read_positive(reader, "ranks_per_node", fit.ranks_per_node);
  read_positive(reader, "nodes", fit.nodes);
  read_positive(reader, "siblings", fit.siblings);
  require_not_negative(reader, "alpha", fit.alpha);
  read_not_negative(reader, "gamma_seconds_per_sqrt_byte", fit.gamma_seconds_per_sqrt_byte);
  require_positive(reader, "bandwidth", fit.bandwidth);
  read_not_negative(reader, "relative_error", fit.relative_error);
  reader.read("provenance", fit.provenance);
  reader.finish();
  return fit;
}

GemmSample read_gemm_sample(YamlReader reader) {
  GemmSample sample;
  reader.read("batch", sample.batch);
  for (const auto& [key, value] :
       {std::pair<const char*, std::int64_t*>{"m", &sample.m}, {"n", &sample.n}, {"k", &sample.k}}) {
    require_positive(reader, key, *value);
  }
  reader.read("pass", sample.pass);
  reader.read("format", sample.format);
  require_positive(reader, "seconds", sample.seconds);
  reader.finish();
  return sample;
}

OpSample read_op_sample(YamlReader reader) {
  OpSample sample;
  reader.require("op", sample.op);
  reader.require("shape", sample.shape);
  require_not_negative(reader, "forward", sample.forward);
  read_not_negative(reader, "backward", sample.backward);
  reader.read("format", sample.format);
  reader.finish();
  return sample;
}

void read_fits(YamlReader& reader, TimeConstants& time) {
  if (auto gemm = reader.child("gemm")) {
    for (const Choice<Pass>& pass : choices(Pass{})) {
      if (auto fit = gemm->child(pass.name)) read_fit(*fit, time.gemm[pass.value]);
    }
    gemm->finish();
  }
  if (auto fit = reader.child("attention_forward")) read_fit(*fit, time.attention_forward);
  if (auto fit = reader.child("attention_backward")) read_fit(*fit, time.attention_backward);
  if (auto fit = reader.child("memory_bound")) read_fit(*fit, time.memory_bound);
  if (auto fit = reader.child("optimizer")) read_fit(*fit, time.optimizer);
}

void read_time(YamlReader reader, TimeConstants& time) {
  read_fits(reader, time);
  read_not_negative(reader, "launch", time.launch);
  read_not_negative(reader, "pipeline_interference", time.pipeline_interference);
  read_positive(reader, "overlap_compute_slowdown", time.overlap_compute_slowdown);
  read_positive(reader, "overlap_communication_slowdown", time.overlap_communication_slowdown);
  read_positive(reader, "global_factor", time.global_factor);
  for (YamlReader& sample : reader.children("gemm_samples")) time.gemm_samples.push_back(read_gemm_sample(sample));
  for (YamlReader& sample : reader.children("op_samples")) time.op_samples.push_back(read_op_sample(sample));
  for (YamlReader& fit : reader.children("collectives")) time.collectives.push_back(read_collective(fit));
  reader.finish();
}

void read_provenance(YamlReader reader, std::map<std::string, std::string>& provenance) {
  for (const std::string& key : reader.keys()) reader.read(key, provenance[key]);
  reader.finish();
}

YamlValue device_yaml(const DeviceSpec& device) {
  YamlValue yaml = YamlValue::mapping();
  yaml.add("name", to_yaml(device.name));
  yaml.add("vendor", to_yaml(device.vendor));
  YamlValue& peak = yaml.add("peak", YamlValue::mapping());
  peak.flow = device.peak.empty();
  for (const auto& [format, rate] : device.peak) peak.add(std::string(name_of(format)), to_yaml(rate));
  yaml.add("memory", to_yaml(device.memory));
  yaml.add("memory_bandwidth", to_yaml(device.memory_bandwidth));
  yaml.add("multiprocessors", to_yaml(device.multiprocessors));
  yaml.add("is_cpu", to_yaml(device.is_cpu));
  return yaml;
}

YamlValue link_yaml(const LinkSpec& link) {
  YamlValue yaml = YamlValue::mapping();
  yaml.flow = true;
  yaml.add("bandwidth", to_yaml(link.bandwidth));
  yaml.add("latency", to_yaml(link.latency));
  yaml.add("switched", to_yaml(link.switched));
  return yaml;
}

YamlValue fit_yaml(const OpFit& fit) {
  YamlValue yaml = YamlValue::mapping();
  yaml.flow = true;
  yaml.add("flops_factor", to_yaml(fit.flops_factor));
  yaml.add("bytes_factor", to_yaml(fit.bytes_factor));
  yaml.add("constant", to_yaml(fit.constant));
  yaml.add("relative_error", to_yaml(fit.relative_error));
  yaml.add("provenance", to_yaml(fit.provenance));
  return yaml;
}

YamlValue collective_yaml(const CollectiveFit& fit) {
  YamlValue yaml = YamlValue::mapping();
  yaml.flow = true;
  yaml.add("collective", to_yaml(fit.collective));
  yaml.add("ranks_per_node", to_yaml(fit.ranks_per_node));
  yaml.add("nodes", to_yaml(fit.nodes));
  yaml.add("siblings", to_yaml(fit.siblings));
  yaml.add("alpha", to_yaml(fit.alpha));
  yaml.add("gamma_seconds_per_sqrt_byte", to_yaml(fit.gamma_seconds_per_sqrt_byte));
  yaml.add("bandwidth", to_yaml(fit.bandwidth));
  yaml.add("relative_error", to_yaml(fit.relative_error));
  yaml.add("provenance", to_yaml(fit.provenance));
  return yaml;
}

YamlValue gemm_sample_yaml(const GemmSample& sample) {
  YamlValue yaml = YamlValue::mapping();
  yaml.flow = true;
  if (sample.batch != 1) yaml.add("batch", to_yaml(sample.batch));
  yaml.add("m", to_yaml(sample.m));
  yaml.add("n", to_yaml(sample.n));
  yaml.add("k", to_yaml(sample.k));
  yaml.add("pass", to_yaml(sample.pass));
  yaml.add("format", to_yaml(sample.format));
  yaml.add("seconds", to_yaml(sample.seconds));
  return yaml;
}

YamlValue op_sample_yaml(const OpSample& sample) {
  YamlValue yaml = YamlValue::mapping();
  yaml.flow = true;
  yaml.add("op", to_yaml(sample.op));
  yaml.add("shape", to_yaml(sample.shape));
  yaml.add("forward", to_yaml(sample.forward));
  yaml.add("backward", to_yaml(sample.backward));
  yaml.add("format", to_yaml(sample.format));
  return yaml;
}

template <class Items, class Write>
void add_list(YamlValue& yaml, const std::string& key, const Items& items, Write write) {
  if (items.empty()) return;
  YamlValue& list = yaml.add(key, YamlValue::sequence({}));
  list.flow = false;
  for (const auto& item : items) list.items.push_back(write(item));
}

YamlValue time_yaml(const TimeConstants& time) {
  YamlValue yaml = YamlValue::mapping();
  if (!time.gemm.empty()) {
    YamlValue& gemm = yaml.add("gemm", YamlValue::mapping());
    for (const auto& [pass, fit] : time.gemm) gemm.add(std::string(name_of(pass)), fit_yaml(fit));
  }
  yaml.add("attention_forward", fit_yaml(time.attention_forward));
  yaml.add("attention_backward", fit_yaml(time.attention_backward));
  yaml.add("memory_bound", fit_yaml(time.memory_bound));
  yaml.add("optimizer", fit_yaml(time.optimizer));
  yaml.add("launch", to_yaml(time.launch));
  yaml.add("pipeline_interference", to_yaml(time.pipeline_interference));
  yaml.add("overlap_compute_slowdown", to_yaml(time.overlap_compute_slowdown));
  yaml.add("overlap_communication_slowdown", to_yaml(time.overlap_communication_slowdown));
  yaml.add("global_factor", to_yaml(time.global_factor));
  add_list(yaml, "collectives", time.collectives, collective_yaml);
  add_list(yaml, "gemm_samples", time.gemm_samples, gemm_sample_yaml);
  add_list(yaml, "op_samples", time.op_samples, op_sample_yaml);
  return yaml;
}

}  // namespace

HardwareSpec read_hardware(const YamlValue& document, const std::string& file) {
  HardwareSpec hardware;
  std::vector<Diagnostic> errors;
  YamlReader reader(document, file, errors);
  reader.require("name", hardware.name);
  reader.read("aliases", hardware.aliases);
  reader.read("source", hardware.source);
  if (auto device = reader.child("device")) read_device(*device, hardware.device);
  if (!reader.has("device")) reader.error("device", "the key 'device' is missing");
  require_positive(reader, "devices_per_node", hardware.devices_per_node);
  if (auto link = reader.child("intra_node")) read_link(*link, hardware.intra_node);
  if (!reader.has("intra_node"))
    reader.error("intra_node", "the key 'intra_node' is missing: links between devices of a node");
  if (auto link = reader.child("inter_node")) read_link(*link, hardware.inter_node);
  if (!reader.has("inter_node")) reader.error("inter_node", "the key 'inter_node' is missing: network per device");
  read_not_negative(reader, "context", hardware.context);
  read_not_negative(reader, "communicator", hardware.communicator);
  read_not_negative(reader, "cores", hardware.cores);
  if (auto time = reader.child("time")) read_time(*time, hardware.time);
  if (auto provenance = reader.child("provenance")) read_provenance(*provenance, hardware.provenance);
  reader.finish();
  if (!errors.empty()) throw ConfigError(std::move(errors));
  return hardware;
}

YamlValue hardware_yaml(const HardwareSpec& hardware) {
  YamlValue yaml = YamlValue::mapping();
  yaml.add("name", to_yaml(hardware.name));
  yaml.add("aliases", to_yaml(hardware.aliases));
  yaml.add("source", to_yaml(hardware.source));
  yaml.add("device", device_yaml(hardware.device));
  yaml.add("devices_per_node", to_yaml(hardware.devices_per_node));
  yaml.add("intra_node", link_yaml(hardware.intra_node));
  yaml.add("inter_node", link_yaml(hardware.inter_node));
  yaml.add("context", to_yaml(hardware.context));
  yaml.add("communicator", to_yaml(hardware.communicator));
  yaml.add("cores", to_yaml(hardware.cores));
  yaml.add("time", time_yaml(hardware.time));
  YamlValue& provenance = yaml.add("provenance", YamlValue::mapping());
  for (const auto& [key, text] : hardware.provenance) provenance.add(key, to_yaml(text));
  return yaml;
}

}  // namespace reckon
