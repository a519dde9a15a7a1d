// Runs the built reckon as a user would and catches what it says.
#pragma once

#include <string>
#include <vector>

namespace reckon::test {

struct CommandResult {
  int exit_code = 0;
  std::string out, err;
};

/// A shell line; "reckon" stands for the built program. Standard input is empty.
CommandResult run_command(const std::string& line, const std::string& folder = {});

/// A folder of its own for each test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file there and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

}  // namespace reckon::test
