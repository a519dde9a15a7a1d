#include "cli/run_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "plan/errors.h"

namespace reckon {

namespace {

constexpr int kSecondsToDie = 10;  // between SIGTERM and SIGKILL

/// Blocks the signals that run_process waits for, and restores the mask at the end.
class SignalGate {
 public:
  SignalGate() {
    sigemptyset(&waited_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&waited_, signal);
    ::sigprocmask(SIG_BLOCK, &waited_, &before_);
  }
  ~SignalGate() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  const sigset_t& before() const { return before_; }

  /// The next signal, or 0 after `seconds`; seconds < 0 waits without end.
  int next(int seconds) const {
    const timespec limit{seconds, 0};
    const int signal = seconds < 0 ? ::sigwaitinfo(&waited_, nullptr) : ::sigtimedwait(&waited_, nullptr, &limit);
    return signal < 0 ? 0 : signal;
  }

 private:
  sigset_t waited_{}, before_{};
};

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, char* const* environment, const sigset_t& mask, int error_pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // our own SIGKILL does not leave it behind
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (const int nothing = ::open("/dev/null", O_RDONLY); nothing > STDIN_FILENO) {
    ::dup2(nothing, STDIN_FILENO);  // the user's input is not for the ranks
    ::close(nothing);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  environ = const_cast<char**>(environment);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(error_pipe, &error, sizeof error);
  ::_exit(127);
}

std::vector<std::string> whole_environment(const ProcessSpec& spec) {
  std::vector<std::string> all;
  for (const auto& [name, value] : spec.environment) all.push_back(name + "=" + value);
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : spec.environment) replaced = replaced || text.starts_with(name + "=");
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

pid_t start(const ProcessSpec& spec, const sigset_t& mask) {
  const std::vector<std::string> environment = whole_environment(spec);
  const auto argument_pointers = pointers(spec.command);
  const auto environment_pointers = pointers(environment);
  std::array<int, 2> error_pipe{};
  if (::pipe2(error_pipe.data(), O_CLOEXEC) != 0) throw RunError(fmt::format("pipe2 failed: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) become(argument_pointers.data(), environment_pointers.data(), mask, error_pipe[1]);
  const int fork_error = errno;
  ::close(error_pipe[1]);
  int error = child < 0 ? fork_error : 0;
  if (child > 0 && ::read(error_pipe[0], &error, sizeof error) <= 0) error = 0;
  ::close(error_pipe[0]);
  if (error != 0) {
    if (child > 0) ::waitpid(child, nullptr, 0);
    throw RunError(fmt::format("{} cannot be started: {}", spec.command[0], std::strerror(error)));
  }
  ::setpgid(child, child);  // also here, so that it is true before the first signal is passed on
  return child;
}

/// Children that we have now: with the subreaper setting also what a dead launcher left behind.
std::vector<pid_t> children() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", ::getpid()));
  std::vector<pid_t> found;
  for (pid_t child; list >> child;) found.push_back(child);
  return found;
}

void end_everything_left(pid_t group) {
  ::kill(-group, SIGKILL);
  for (auto left = children(); !left.empty(); left = children()) {
    for (pid_t child : left) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
}

/// How far we have gone to end the program.
enum class Asked { nothing, to_end, to_stop };

ProcessEnd end_of(int status, int interrupted_by) {
  ProcessEnd end;
  end.interrupted_by = interrupted_by;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace

ProcessEnd run_process(const ProcessSpec& spec) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const SignalGate gate;
  const pid_t child = start(spec, gate.before());
  int interrupted_by = 0, status = 0;
  for (Asked asked = Asked::nothing;;) {
    const int seconds = asked == Asked::nothing ? -1 : asked == Asked::to_end ? spec.seconds_to_end : kSecondsToDie;
    const int signal = gate.next(seconds);
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (signal == SIGCHLD) continue;
    if (asked == Asked::nothing && signal != 0) {
      interrupted_by = signal;
      ::kill(child, spec.polite_signal);
      asked = Asked::to_end;
    } else if (asked == Asked::to_end) {  // again, or too late
      ::kill(-child, SIGTERM);
      asked = Asked::to_stop;
    } else if (asked == Asked::to_stop && signal == 0) {
      ::kill(-child, SIGKILL);
    }
  }
  end_everything_left(child);
  return end_of(status, interrupted_by);
}

}  // namespace reckon
