#include "plan/exchange/slurm_job.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace reckon {

namespace {

constexpr std::pair<std::string_view, std::string_view> kShortNames[] = {
    {"-N", "--nodes"}, {"-n", "--ntasks"}, {"-G", "--gpus"},  {"-J", "--job-name"}, {"-p", "--partition"},
    {"-t", "--time"},  {"-o", "--output"}, {"-e", "--error"}, {"-A", "--account"}};

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char letter) { return std::isdigit(letter); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  return text.substr(0, std::min(text.find_first_of(" \t\r#"), text.size()));
}

/// "gpu:a100:8" and "a100:8" ask for 8.
std::string number_at_the_end(std::string_view text) {
  return std::string(text.substr(text.rfind(':') + 1));
}

SlurmRequest split(std::string_view text) {
  if (!text.starts_with("--") && text.size() > 2) {  // -N4 and -N 4
    const std::string_view letter = text.substr(0, 2);
    for (const auto& [name, option] : kShortNames)
      if (letter == name) return {std::string(option), std::string(trimmed(text.substr(2)))};
    return {std::string(letter), std::string(trimmed(text.substr(2)))};
  }
  const std::size_t end = std::min(text.find_first_of("= \t\r"), text.size());
  return {std::string(text.substr(0, end)), end < text.size() ? std::string(trimmed(text.substr(end + 1))) : ""};
}

}  // namespace

std::optional<SlurmRequest> SlurmJob::read(std::string_view comment) {
  constexpr std::string_view kMark = "#SBATCH";
  if (!comment.starts_with(kMark)) return std::nullopt;
  comment.remove_prefix(kMark.size());
  const std::size_t start = comment.find_first_not_of(" \t");
  if (start == 0 || start == std::string_view::npos || comment[start] != '-') return std::nullopt;
  SlurmRequest request = split(comment.substr(start));
  if (request.value.empty()) request.value = "true";
  if (request.option == "--gres" && request.value.starts_with("gpu:")) request.option = "--gres=gpu";
  if (request.option == "--gres=gpu" || request.option == "--gpus" || request.option == "--gpus-per-node")
    request.value = number_at_the_end(request.value);
  requests_[request.option] = request.value;
  return request;
}

std::optional<std::string> SlurmJob::asked(std::string_view option) const {
  const auto found = requests_.find(option);
  if (found == requests_.end() || !is_digits(found->second)) return std::nullopt;
  return found->second;
}

std::optional<std::string> SlurmJob::variable(std::string_view name) const {
  if (name == "SLURM_NNODES" || name == "SLURM_JOB_NUM_NODES") return asked("--nodes");
  if (name == "SLURM_NTASKS_PER_NODE") return asked("--ntasks-per-node");
  if (name == "SLURM_GPUS") return asked("--gpus");
  if (name == "SLURM_GPUS_ON_NODE" || name == "SLURM_GPUS_PER_NODE") {
    const auto devices = asked("--gpus-per-node");
    return devices ? devices : asked("--gres=gpu");
  }
  if (name == "SLURM_NTASKS" || name == "SLURM_NPROCS") {
    if (auto tasks = asked("--ntasks")) return tasks;
    const auto nodes = asked("--nodes"), each = asked("--ntasks-per-node");
    if (nodes && each) return std::to_string(std::stoll(*nodes) * std::stoll(*each));
  }
  return std::nullopt;
}

}  // namespace reckon
