#include "report/profile_json.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

#include "plan/errors.h"
#include "plan/memory_fields.h"
#include "report/checked_json.h"
#include "report/plan_json.h"
#include "report/write_budget.h"

namespace reckon {

namespace {

constexpr std::string_view kSchema = "reckon.profile/1";

template <class Value, class Wanted>
concept SameRecord = std::same_as<std::remove_const_t<Value>, Wanted>;

template <class Value>
constexpr bool is_quantity = false;
template <class Tag, class Number>
constexpr bool is_quantity<Quantity<Tag, Number>> = true;

// Each record lists its keys once, in the order of the schema; the writer and the reader below both walk these lists.

template <class Visit>
void visit_fields(Visit& visit, SameRecord<Verdict> auto& verdict) {
  visit("fits", verdict.fits);
  visit("probability", verdict.probability);
  visit("worst_rank", verdict.worst_rank);
  visit("need_bytes", verdict.need);
  visit("limit_bytes", verdict.limit);
  visit("breaks", verdict.breaks);
  visit.added("nearest", verdict.nearest);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<StepSummary> auto& step) {
  visit("seconds", step.seconds);
  visit.pair("interval_seconds", step.interval_low, step.interval_high);
  visit("tokens", step.tokens);
  visit("useful_tokens", step.useful_tokens);
  visit("tokens_per_second_per_device", step.tokens_per_second_per_device);
  visit("useful_tokens_per_second_per_device", step.useful_tokens_per_second_per_device);
  visit("model_flops", step.model_flops);
  visit("mfu", step.mfu);
  visit("hfu", step.hfu);
  visit("flop_convention", step.flop_convention);
  visit("bubble_fraction", step.bubble_fraction);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<TimeComponent> auto& time) {
  visit("component", time.component);
  visit("seconds", time.seconds);
  visit("exposed_seconds", time.exposed_seconds);
  visit.added("spread_seconds", time.spread);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<StageMemory> auto& memory) {
  for (const MemoryField& field : kMemoryFields) visit(field.name, memory.*field.bytes);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<StageProfile> auto& stage) {
  visit("stage", stage.stage);
  visit("layers", stage.layers);
  visit("recomputed_layers", stage.recomputed_layers);
  visit("in_flight", stage.in_flight);
  visit("activation_bits", stage.activation_bits);
  visit.added("worst_rank", stage.worst_rank);
  visit("memory", stage.memory);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<TrafficEntry> auto& traffic) {
  visit("group", traffic.group);
  visit("collective", traffic.collective);
  visit("dtype", traffic.dtype);
  visit("calls", traffic.calls);
  visit("bytes_per_rank", traffic.bytes_per_rank);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<PackingSummary> auto& packing) {
  visit("documents", packing.documents);
  visit("documents_cut", packing.documents_cut);
  visit("mean_square_length", packing.mean_square_length);
  visit("row_imbalance", packing.row_imbalance);
  visit("real_token_share", packing.real_token_share);
  visit("sum_of_squares_share", packing.sum_of_squares_share);
  visit("placement", packing.placement);
  visit("imbalance", packing.imbalance);
  visit("kv_blocks_mean", packing.kv_blocks_mean);
  visit("kv_blocks_max", packing.kv_blocks_max);
}

template <class Visit>
void visit_fields(Visit& visit, SameRecord<StepProfile> auto& profile) {
  visit("source", profile.source);
  visit("plan", profile.plan);
  visit("world_size", profile.world_size);
  visit.object("model", [&](auto& model) {
    model("name", profile.plan.model.name);
    model("parameters", profile.parameters);
    model("active_parameters", profile.active_parameters);
  });
  visit("verdict", profile.verdict);
  visit("step", profile.step);
  visit("time", profile.time);
  visit("stages", profile.stages);
  visit("traffic", profile.traffic);
  visit("packing", profile.packing);
  visit("assumptions", profile.assumptions);
  visit.added("warnings", profile.warnings);
  visit.added("correction_factor", profile.plan.hardware.time.global_factor);
}

/// Record -> JSON object.
class Writer {
 public:
  template <class Value>
  void operator()(const char* key, const Value& value) {
    object_[key] = to_json(value);
  }
  template <class Value>
  void added(const char* key, const Value& value) {
    (*this)(key, value);
  }
  template <class Value>
  void pair(const char* key, const Value& first, const Value& second) {
    object_[key] = Json::array({to_json(first), to_json(second)});
  }
  template <class Fill>
  void object(const char* key, Fill fill) {
    Writer inner;
    fill(inner);
    object_[key] = std::move(inner.object_);
  }

  template <class Record>
  static Json write(const Record& record) {
    Writer writer;
    visit_fields(writer, record);
    return std::move(writer.object_);
  }

 private:
  static Json to_json(ProfileSource source) { return name_of(source); }
  static Json to_json(const Plan& plan) { return plan_json(plan); }
  static Json to_json(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }
  static Json to_json(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }
  template <class Element>
  static Json to_json(const std::vector<Element>& elements) {
    Json list = Json::array();
    for (const Element& element : elements) list.push_back(to_json(element));
    return list;
  }
  template <class Value>
  static Json to_json(const Value& value) {
    if constexpr (is_quantity<Value>) {
      return to_json(value.value);
    } else if constexpr (std::is_integral_v<Value> || std::same_as<Value, std::string>) {
      return value;
    } else {
      return write(value);
    }
  }

  Json object_ = Json::object();
};

/// JSON object -> record. Keys that the record does not list are passed over: the schema may grow.
class Reader {
 public:
  Reader(CheckedJson object, const ConfigPaths& paths) : object_(std::move(object)), paths_(paths) {}

  template <class Value>
  void operator()(const char* key, Value& value) {
    read(object_.at(key), value);
  }
  template <class Value>
  void added(const char* key, Value& value) {  // a key younger than the schema: its default stands when it is absent
    if (object_.has(key)) read(object_.at(key), value);
  }
  template <class Value>
  void pair(const char* key, Value& first, Value& second) {
    const auto elements = object_.at(key).list();
    if (elements.size() != 2) object_.at(key).fail("two numbers were expected");
    read(elements[0], first);
    read(elements[1], second);
  }
  template <class Fill>
  void object(const char* key, Fill fill) {
    Reader inner(object_.at(key), paths_);
    fill(inner);
  }

 private:
  void read(const CheckedJson& json, ProfileSource& source) {
    for (ProfileSource candidate : {ProfileSource::predicted, ProfileSource::simulated, ProfileSource::measured}) {
      if (json.text() == name_of(candidate)) {
        source = candidate;
        return;
      }
    }
    json.fail("predicted, simulated or measured was expected");
  }
  void read(const CheckedJson& json, Plan& plan) { plan = read_plan_json(json, paths_); }
  void read(const CheckedJson& json, bool& value) { value = json.boolean(); }
  void read(const CheckedJson& json, double& value) { value = json.number(); }
  void read(const CheckedJson& json, std::int64_t& value) { value = json.integer(); }
  void read(const CheckedJson& json, int& value) {
    if (!std::in_range<int>(json.integer())) json.fail("a smaller number was expected");
    value = static_cast<int>(json.integer());
  }
  void read(const CheckedJson& json, std::string& value) { value = json.text(); }
  void read(const CheckedJson& json, std::optional<std::string>& value) {
    value = json.json().is_null() ? std::nullopt : std::optional(json.text());
  }
  template <class Element>
  void read(const CheckedJson& json, std::vector<Element>& elements) {
    elements.clear();
    for (const CheckedJson& element : json.list()) read(element, elements.emplace_back());
  }
  template <class Tag, class Number>
  void read(const CheckedJson& json, Quantity<Tag, Number>& quantity) {
    read(json, quantity.value);
  }
  template <class Record>
  void read(const CheckedJson& json, Record& record) {
    Reader reader(json, paths_);
    visit_fields(reader, record);
  }

  CheckedJson object_;
  const ConfigPaths& paths_;
};

}  // namespace

std::string_view name_of(ProfileSource source) {
  switch (source) {
    case ProfileSource::predicted: return "predicted";
    case ProfileSource::simulated: return "simulated";
    case ProfileSource::measured: return "measured";
  }
  return "?";
}

std::string profile_json(const StepProfile& profile) {
  Json document = {{"schema", kSchema}};
  document.update(Writer::write(profile));
  if (profile.budget) document["budget"] = budget_json(*profile.budget);
  return document_text(document);
}

StepProfile read_profile(const std::filesystem::path& file, const ConfigPaths& paths) {
  const Json document = read_json(file);
  const CheckedJson root(document, file.string());
  if (root.at("schema").text() != kSchema) root.at("schema").fail(fmt::format("{} was expected", kSchema));
  Reader reader(root, paths);
  StepProfile profile;
  visit_fields(reader, profile);
  return profile;
}

}  // namespace reckon
