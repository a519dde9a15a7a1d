// Runs one program to its end, so that nothing it started outlives us.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reckon {

struct ProcessSpec {
  std::vector<std::string> command;                              // program and its arguments; found through PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

struct ProcessEnd {
  int exit_code = 0;       // 128 + signal when a signal ended it, as a shell says it
  int signal = 0;          // that ended it, 0 = none
  int interrupted_by = 0;  // SIGINT or SIGTERM sent to us, which ended it; 0 = none
};

/// Its standard output goes to our standard error, which keeps ours free for one result. SIGINT and SIGTERM are passed
/// on; ten seconds later, and for whatever is left of its descendants at the end, SIGKILL follows. Throws RunError when
/// the program cannot be started.
ProcessEnd run_process(const ProcessSpec& spec);

}  // namespace reckon
