// The program that is one rank of a run or of a calibration; it alone links MPI and libtorch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace reckon {

/// reckon-rank beside this executable; empty when this build or installation has none.
std::optional<std::filesystem::path> find_rank_program();

/// The same, or a RunError saying which preset brings it; `wanted_for` as in "training".
std::filesystem::path require_rank_program(const std::string& wanted_for);

}  // namespace reckon
