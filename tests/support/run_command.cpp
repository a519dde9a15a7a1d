#include "tests/support/run_command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace reckon::test {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

CommandResult run_command(const std::string& line, const std::string& folder) {
  const TemporaryFolder captured;
  const std::string out = captured.path() + "/out", err = captured.path() + "/err";
  const std::string script = "export PATH='" RECKON_BINARY_DIR "':\"$PATH\"; cd '" + (folder.empty() ? "." : folder) +
                             "' && { " + line + "\n} >'" + out + "' 2>'" + err + "' </dev/null";
  const int status = std::system(script.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out), read_file(err)};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "reckon_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder could be made";
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace reckon::test
