// Runs one program to its end, so that nothing it started outlives us.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

struct ProcessSpec {
  std::vector<std::string> command;                              // program and its arguments; found through PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  int polite_signal = SIGTERM;                                   // asks the program to end by itself ...
  int seconds_to_end = 10;                                       // ... within this time
};

struct ProcessEnd {
  int exit_code = 0;       // 128 + signal when a signal ended it, as a shell says it
  int signal = 0;          // that ended it, 0 = none
  int interrupted_by = 0;  // SIGINT or SIGTERM sent to us, which ended it; 0 = none
};

/// Its standard output goes to our standard error, which keeps ours free for one result. On SIGINT, SIGTERM and SIGHUP
/// the program gets the polite signal; after seconds_to_end, or at once on a second signal, its process group gets
/// SIGTERM, and ten seconds later, and for whatever is left of its descendants at the end, SIGKILL follows. Throws
/// RunError when the program cannot be started.
ProcessEnd run_process(const ProcessSpec& spec);

}  // namespace reckon
