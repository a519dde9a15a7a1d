#include "cost_model/fixed_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "plan/errors.h"

namespace reckon {

namespace {

struct SearchedKey {
  std::string_view name;
  bool (*is_kept)(const Plan& base, const Candidate& candidate);
};

constexpr std::array kSearchedKeys = {
    SearchedKey{"batch.micro_batch",
                [](const Plan& base, const Candidate& c) { return c.micro_batch == base.batch.micro_batch; }},
    SearchedKey{"parallel.data",
                [](const Plan& base, const Candidate& c) { return c.degrees.data == base.parallel.data; }},
    SearchedKey{"parallel.pipeline",
                [](const Plan& base, const Candidate& c) { return c.degrees.pipeline == base.parallel.pipeline; }},
    SearchedKey{"parallel.tensor",
                [](const Plan& base, const Candidate& c) { return c.degrees.tensor == base.parallel.tensor; }},
    SearchedKey{"parallel.ulysses",
                [](const Plan& base, const Candidate& c) { return c.degrees.ulysses == base.parallel.ulysses; }},
    SearchedKey{"parallel.ring",
                [](const Plan& base, const Candidate& c) { return c.degrees.ring == base.parallel.ring; }},
    SearchedKey{"parallel.expert",
                [](const Plan& base, const Candidate& c) { return c.degrees.expert == base.parallel.expert; }},
    SearchedKey{"parallel.zero", [](const Plan& base, const Candidate& c) { return c.zero == base.parallel.zero; }},
    SearchedKey{"parallel.schedule",
                [](const Plan& base, const Candidate& c) { return c.schedule == base.parallel.schedule; }},
    SearchedKey{"parallel.chunks",
                [](const Plan& base, const Candidate& c) { return c.chunks == base.parallel.chunks; }},
    SearchedKey{"activations.recompute",
                [](const Plan& base, const Candidate& c) { return c.recompute == base.activations.recompute; }},
    SearchedKey{"activations.stored",  // the other choices store in fewer bits
                [](const Plan&, const Candidate& c) { return !storage_choices()[c.storage].format; }},
};

std::string searched_names() {
  std::string names;
  for (const SearchedKey& key : kSearchedKeys) names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
  return names;
}

}  // namespace

FixedKeys::FixedKeys(const Plan& base, const std::vector<std::string>& keys) : base_(base) {
  for (const std::string& key : keys) {
    const auto found = std::find_if(kSearchedKeys.begin(), kSearchedKeys.end(),
                                    [&](const SearchedKey& searched) { return searched.name == key; });
    if (found == kSearchedKeys.end())
      throw ConfigError({{fmt::format("--fix {}: a search does not vary that key; it varies {}", key, searched_names()),
                          {},
                          0,
                          0,
                          key}});
    fixed_.push_back(static_cast<std::size_t>(found - kSearchedKeys.begin()));
  }
}

bool FixedKeys::allow(const Candidate& candidate) const {
  return std::all_of(fixed_.begin(), fixed_.end(),
                     [&](std::size_t key) { return kSearchedKeys[key].is_kept(base_, candidate); });
}

}  // namespace reckon
