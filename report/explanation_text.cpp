#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "plan/lossy_change.h"
#include "plan/memory_fields.h"
#include "report/explanation_report.h"
#include "report/format_quantity.h"
#include "report/write_console.h"

namespace reckon {

namespace {

constexpr std::size_t kMatchesShown = 12, kRowsShown = 12, kChangesShown = 8, kValueShown = 60;

/// A list of a calibrated file is longer than a line; --json has it whole.
std::string shortened(const std::string& value) {
  return value.size() <= kValueShown ? value : value.substr(0, kValueShown - 3) + "...";
}

std::string how(const SizeMatch& match) {
  if (match.error == 0) return "to the printed digit";
  if (match.rounded) return "rounded up by the allocator";
  return signed_percent(match.error);
}

/// Rows that differ only in what has the size: the ops of a layer share one workspace.
struct MatchGroup {
  const SizeMatch* match;
  std::vector<std::string> names;
};

std::vector<MatchGroup> grouped_matches(const std::vector<SizeMatch>& matches) {
  const auto rest = [](const SizeMatch& match) {
    const SizedTensor& tensor = match.tensor;
    return std::tie(tensor.form, tensor.where, tensor.bytes, tensor.whole, match.rounded, match.error);
  };
  std::vector<MatchGroup> groups;
  for (const SizeMatch& match : matches) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const MatchGroup& group) { return rest(*group.match) == rest(match); });
    if (found == groups.end()) groups.push_back({&match, {match.tensor.name}});
    else found->names.push_back(match.tensor.name);
  }
  return groups;
}

std::string name_of_group(const MatchGroup& group) {
  if (group.names.size() == 1) return group.names.front();
  return fmt::format("{} and {} more of this size", group.names.front(), group.names.size() - 1);
}

std::string signed_time(Seconds seconds) {
  return (seconds.value < 0 ? "-" : "+") + with_unit(Seconds(std::abs(seconds.value)));
}

std::string change_table(const std::string& title, const std::vector<PlanChange>& changes, Seconds step,
                         const TextStyle& style) {
  Table table({title, "step", "change", "needs GiB"}, {true, false, false, false});
  bool lossy = false;
  for (std::size_t i = 0; i < std::min(changes.size(), kChangesShown); ++i) {
    const PlanChange& change = changes[i];
    table.add({fmt::format("{}", fmt::join(change.overrides, " ")), with_unit(change.step),
               signed_percent(change.step / step - 1), gib(change.need)});
    lossy = lossy || changes_gradients(change.overrides.front());
  }
  return table.text(style) + (lossy ? wrapped(std::string(kGradientsChange)) + "\n" : "");
}

std::string memory_table(const PlanExplanation& explanation, const TextStyle& style) {
  const auto& stages = explanation.profile.stages;
  const auto worst = std::max_element(stages.begin(), stages.end(), [](const StageProfile& a, const StageProfile& b) {
    return a.memory.device_used < b.memory.device_used;
  });
  if (worst == stages.end()) return "";
  const StageMemory& memory = worst->memory;
  std::vector<std::pair<std::string, Bytes>> parts;
  for (const MemoryField& field : kMemoryFields)
    if (field.kind != MemoryFieldKind::sum) parts.emplace_back(field.words(), memory.*field.bytes);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({fmt::format("memory of stage {}", worst->stage), "GiB", "share", ""}, {true, false, false, true});
  for (const auto& [name, bytes] : parts)
    if (bytes.value > 0)
      table.add({name, gib(bytes), percent(bytes / memory.device_used), bar(bytes / memory.device_used, 20, style)});
  return table.text(style);
}

std::string saving_table(const PlanExplanation& explanation, const TextStyle& style) {
  if (explanation.savings.empty()) return "";
  Table table({"if it were free", "saves", "share of the step", ""}, {true, false, false, true});
  for (std::size_t i = 0; i < std::min(explanation.savings.size(), std::size_t{6}); ++i) {
    const TimeSaving& saving = explanation.savings[i];
    const double share = saving.saved / explanation.profile.step.seconds;
    table.add({saving.component, with_unit(saving.saved), percent(share), bar(share, 20, style)});
  }
  return "\n" + table.text(style);
}

std::string smallest_sentence(const PlanExplanation& explanation) {
  if (!explanation.smallest)
    return wrapped(fmt::format("smallest: it fits on none of the numbers of devices up to {}",
                               grouped(explanation.devices_tried)));
  return wrapped(fmt::format("smallest: {} devices, with {} ({} a step, {} needed)",
                             grouped(explanation.smallest_devices), fmt::join(explanation.smallest->overrides, " "),
                             with_unit(explanation.smallest->step), with_unit(explanation.smallest->need)));
}

}  // namespace

std::string explanation_text(const SizeExplanation& explanation, const TextStyle& style) {
  std::string text = fmt::format("{} was asked for\n\n", with_unit(explanation.line.asked));
  if (explanation.matches.empty()) return text + "this plan allocates nothing\n";
  const SizeMatch& best = explanation.matches.front();
  if (!best.rounded && std::abs(best.error) > 0.02)
    text += "nothing of this plan has that size, whole or divided; the closest are:\n\n";
  {
    Table table({"what has that size", "as", "where", "bytes", "match"}, {true, true, true, false, true});
    const std::vector<MatchGroup> groups = grouped_matches(explanation.matches);
    for (std::size_t i = 0; i < std::min(groups.size(), kMatchesShown); ++i) {
      const SizeMatch& match = *groups[i].match;
      table.add({name_of_group(groups[i]), match.tensor.form + (match.tensor.whole ? ", undivided" : ""),
                 match.tensor.where, grouped(match.tensor.bytes.value), how(match)});
    }
    text += table.text(style);
    if (groups.size() > kMatchesShown)
      text += fmt::format("and {} more rows; --json lists all\n", groups.size() - kMatchesShown);
  }
  for (const std::string& remark : explanation.remarks) text += "\n" + wrapped(remark);
  if (!explanation.remarks.empty() && !text.ends_with('\n')) text += "\n";
  return text;
}

std::string explanation_text(const PlanExplanation& explanation, const TextStyle& style) {
  const Verdict& verdict = explanation.profile.verdict;
  std::string text = verdict.fits ? fmt::format("the plan fits: {} of {} needed, {} a step", with_unit(verdict.need),
                                                with_unit(verdict.limit), with_unit(explanation.profile.step.seconds))
                                  : verdict_sentence(verdict);
  text += "\n" + wrapped("bound by: " + explanation.bound_by) + "\n";
  if (!text.ends_with("\n")) text += "\n";
  text += "\n" + memory_table(explanation, style) + saving_table(explanation, style) + "\n";
  const std::string title = verdict.fits ? "single change that makes it faster" : "single change that makes it fit";
  if (explanation.changes.empty()) text += fmt::format("{}: none of those tried\n", title);
  else text += change_table(title, explanation.changes, explanation.profile.step.seconds, style);
  text += "\n" + smallest_sentence(explanation);
  if (!text.ends_with("\n")) text += "\n";
  return text;
}

std::string explanation_text(const DifferenceExplanation& explanation, const TextStyle& style) {
  const Seconds first = explanation.first.step.seconds, second = explanation.second.step.seconds * explanation.scale;
  std::string text = fmt::format("first:  {}\nsecond: {}\n", explanation.first_name, explanation.second_name);
  text += fmt::format("the second is {} by {}: {} a step instead of {}\n", second > first ? "slower" : "faster",
                      percent(std::abs(second / first - 1)), with_unit(second), with_unit(first));
  if (explanation.scale != 1)
    text += fmt::format("(times of the second plan for as many tokens as a step of the first: x {:.4g})\n",
                        explanation.scale);
  Table table({"component (exposed)", "first", "second", "difference", "share of it"},
              {true, false, false, false, false});
  Seconds shown{0};
  const Seconds total = second - first;
  const auto share = [&](Seconds part) { return total.value == 0 ? std::string("-") : percent(part / total); };
  std::size_t count = 0;
  for (const DifferenceRow& row : explanation.rows) {
    const Seconds difference = row.second - row.first;
    if (count++ >= kRowsShown) break;
    shown += difference;
    table.add({row.component, with_unit(row.first), with_unit(row.second), signed_time(difference), share(difference)});
  }
  if (explanation.rows.size() > kRowsShown)
    table.add({fmt::format("{} more", explanation.rows.size() - kRowsShown), "", "", signed_time(total - shown),
               share(total - shown)});
  table.add({Cell("step", Paint::bold), with_unit(first), with_unit(second), signed_time(total), share(total)});
  text += "\n" + table.text(style);
  Table keys({"key", "first", "second"}, {true, true, true});
  for (const ChangedKey& key : explanation.keys) keys.add({key.key, shortened(key.first), shortened(key.second)});
  if (!explanation.keys.empty()) text += "\n" + keys.text(style);
  return text;
}

}  // namespace reckon
