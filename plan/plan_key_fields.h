// How rows of the key table are made from fields of the plan: type, range, `auto`, lists and formats. Private to the
// schema.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "plan/plan_schema.h"
#include "plan/yaml_reader.h"

namespace reckon::plan_key {

/// Range of a number, both ends included.
struct Limits {
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
};

constexpr double kMostRanks = 1 << 20, kMostTokens = 1 << 30, kMostRows = 1 << 30, kMany = 1e12;

constexpr Limits kDegree{1, kMostRanks};
constexpr Limits kShare{0, 1};
constexpr Limits kPositive{std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
constexpr Limits kNotNegative{0, std::numeric_limits<double>::max()};

inline std::string limits_text(const Limits& limits) {
  const bool low = limits.low > std::numeric_limits<double>::lowest();
  const bool high = limits.high < std::numeric_limits<double>::max();
  if (low && limits.low == std::numeric_limits<double>::min())
    return high ? fmt::format("above 0, at most {}", limits.high) : "above 0";
  if (low && high) return fmt::format("{} to {}", limits.low, limits.high);
  if (low) return fmt::format("{} or more", limits.low);
  return high ? fmt::format("at most {}", limits.high) : "";
}

inline void check_limits(const YamlValue& at, double value, const Limits& limits) {
  if (value >= limits.low && value <= limits.high) return;
  refuse(at, fmt::format("{} is out of range: {}",
                         at.kind == YamlValue::Kind::scalar ? at.text : fmt::format("{}", value), limits_text(limits)));
}

template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T>
double number_in(const T& value) {
  if constexpr (kIsNumber<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(value.value);
  }
}

template <class T>
std::string type_of() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_integral_v<T>) return "whole number";
  if constexpr (std::is_floating_point_v<T>) return "number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
  if constexpr (std::is_same_v<T, Bytes>) return "size";
  if constexpr (std::is_same_v<T, Seconds>) return "time";
  if constexpr (std::is_same_v<T, NumberFormat>) return "number format";
  return "choice";
}

template <class T>
std::string allowed_of(const Limits& limits) {
  if constexpr (HasChoices<T>) return list_choices<T>();
  return limits_text(limits);
}

template <class T>
void check_range(const YamlValue& at, const T& value, const Limits& limits) {
  if constexpr (kIsNumber<T> || std::is_same_v<T, Bytes> || std::is_same_v<T, Seconds>) {
    check_limits(at, number_in(value), limits);
  }
}

template <class Access>
using FieldOf = std::remove_cvref_t<std::invoke_result_t<Access, Plan&>>;

inline bool is_auto(const YamlValue& value) {
  return value.kind == YamlValue::Kind::scalar && !value.quoted && value.text == "auto";
}

inline PlanKey described(std::string path, std::string unit, std::string meaning) {
  PlanKey key;
  key.path = std::move(path);
  key.unit = std::move(unit);
  key.meaning = std::move(meaning);
  return key;
}

/// A key of one field. `access` returns a reference to it, for const and other plans.
template <class Access>
PlanKey field(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  using T = FieldOf<Access>;
  PlanKey key = described(std::move(path), std::move(unit), std::move(meaning));
  key.type = type_of<T>();
  key.allowed = allowed_of<T>(limits);
  key.set = [access, limits](const YamlValue& value, Plan& plan) {
    T read{};
    from_yaml(value, read);
    check_range(value, read, limits);
    access(plan) = std::move(read);
  };
  key.get = [access](const Plan& plan) { return to_yaml(access(plan)); };
  return key;
}

template <class Access>
PlanKey field(std::string path, Access access, std::string meaning) {
  return field(std::move(path), access, Limits{}, "", std::move(meaning));
}

/// As field, but the user must give it.
template <class Access>
PlanKey required(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  PlanKey key = field(std::move(path), access, limits, std::move(unit), std::move(meaning));
  key.required = true;
  return key;
}

/// A number or list whose zero or empty value is written `auto`.
template <class Access>
PlanKey field_or_auto(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  using T = FieldOf<Access>;
  PlanKey key = field(std::move(path), access, limits, std::move(unit), std::move(meaning));
  key.allowed = "auto" + (key.allowed.empty() ? "" : ", " + key.allowed);
  key.set = [access, set = key.set](const YamlValue& value, Plan& plan) {
    if (is_auto(value)) {
      access(plan) = T{};
    } else {
      set(value, plan);
    }
  };
  key.get = [access, get = key.get](const Plan& plan) {
    return access(plan) == T{} ? YamlValue::scalar("auto") : get(plan);
  };
  return key;
}

/// A list of whole numbers, one of them for all, or auto (empty).
template <class Access>
PlanKey list_or_auto(std::string path, Access access, Limits limits, std::string unit, std::string meaning) {
  PlanKey key = described(std::move(path), std::move(unit), std::move(meaning));
  key.type = "list of whole numbers";
  key.allowed = "auto, " + limits_text(limits);
  key.set = [access, limits](const YamlValue& value, Plan& plan) {
    FieldOf<Access> numbers;
    if (value.kind == YamlValue::Kind::scalar && !is_auto(value)) {
      from_yaml(value, numbers.emplace_back());
      check_limits(value, number_in(numbers.back()), limits);
    } else if (!is_auto(value)) {
      from_yaml(value, numbers);
      if (numbers.empty()) refuse(value, "the list is empty; write auto or one number a stage");
      for (const YamlValue& item : value.items) {
        check_limits(item, number_in(numbers[static_cast<std::size_t>(&item - value.items.data())]), limits);
      }
    }
    access(plan) = std::move(numbers);
  };
  key.get = [access](const Plan& plan) {
    return access(plan).empty() ? YamlValue::scalar("auto") : to_yaml(access(plan));
  };
  return key;
}

/// A number format out of those that make sense in this place.
template <class Access>
PlanKey format_field(std::string path, Access access, const std::vector<NumberFormat>& allowed, std::string meaning) {
  PlanKey key = field(std::move(path), access, std::move(meaning));
  std::vector<std::string> names;
  for (const NumberFormat one : allowed) names.emplace_back(name_of(one));
  key.allowed = fmt::format("{}", fmt::join(names, ", "));
  key.set = [access, names](const YamlValue& value, Plan& plan) {
    NumberFormat read{};
    from_yaml(value, read);
    if (std::find(names.begin(), names.end(), value.text) == names.end()) refuse_choice(value, names);
    access(plan) = read;
  };
  return key;
}

}  // namespace reckon::plan_key
