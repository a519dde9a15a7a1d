#include "cli/rank_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/find_configs.h"
#include "plan/errors.h"

namespace reckon {

std::optional<std::filesystem::path> find_rank_program() {
  const std::filesystem::path program = executable_path().parent_path() / "reckon-rank";
  if (::access(program.c_str(), X_OK) != 0) return std::nullopt;
  return program;
}

std::filesystem::path require_rank_program(const std::string& wanted_for) {
  if (const auto program = find_rank_program()) return *program;
  throw RunError(fmt::format("{} needs reckon-rank, which is not beside {}; `./bootstrap build --preset cpu` brings it",
                             wanted_for, executable_path().string()));
}

}  // namespace reckon
