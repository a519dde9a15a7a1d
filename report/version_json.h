// What this build of reckon consists of: schema "reckon.version/1".
#pragma once

#include <string>

namespace reckon {

struct BuildParts {
  std::string version;
  std::string compiler;
  std::string backends;      // of this build: "threads mpi", empty = none
  std::string rank_program;  // path of reckon-rank, empty = this build has none
};

std::string version_json(const BuildParts& parts);

}  // namespace reckon
