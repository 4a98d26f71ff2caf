#include "trial_runner/agent/processes/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/open_files.h"

namespace espalier {
namespace {

// Descriptors are moved above this before they are put in their places, so that none is
// overwritten.
constexpr int kFirstSpareFd = 16;
constexpr int kFailureFd = kControlFd + 1;

enum class Stage : int { kPrepare, kEnterDirectory, kExecute };

// What the child writes to the pipe that a successful exec closes.
struct Failure {
  Stage stage;
  int error;
};

// All that the child needs, laid out before it exists: until it executes its program it may only
// make async-signal-safe calls, because other threads of the agent may hold any lock.
struct Preparation {
  std::string program;
  std::string directory;
  std::vector<char*> argv;
  std::vector<std::string> environment;
  std::vector<char*> envp;
  int null_input = -1;
  int log = -1;
  int control = -1;
  int failure = -1;
  pid_t parent = 0;
  bool outlives = false;
  cpu_set_t cpus{};  // none: all
  rlimit open_files{};
};

[[noreturn]] void Fail(int pipe, Stage stage) {
  const Failure failure{stage, errno};
  // If even this fails the parent sees the process exit with 127.
  [[maybe_unused]] const ssize_t written = write(pipe, &failure, sizeof failure);
  _exit(127);
}

void SetSignals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void BecomeReplica(const Preparation& p) {
  const int pipe = fcntl(p.failure, F_DUPFD_CLOEXEC, kFirstSpareFd);
  const int input = fcntl(p.null_input, F_DUPFD_CLOEXEC, kFirstSpareFd);
  const int log = fcntl(p.log, F_DUPFD_CLOEXEC, kFirstSpareFd);
  const int control = fcntl(p.control, F_DUPFD_CLOEXEC, kFirstSpareFd);
  if (pipe < 0 || input < 0 || log < 0 || control < 0) Fail(p.failure, Stage::kPrepare);
  if (p.outlives) {
    if (setsid() < 0) Fail(pipe, Stage::kPrepare);
  } else {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(pipe, Stage::kPrepare);
    // The agent may have died before prctl took effect; then this process would never be killed.
    if (getppid() != p.parent) _exit(127);
    if (setpgid(0, 0) != 0) Fail(pipe, Stage::kPrepare);
  }
  setrlimit(RLIMIT_NOFILE, &p.open_files);
  // Only for speed: where it is refused, the process runs on all.
  if (CPU_COUNT(&p.cpus) > 0) sched_setaffinity(0, sizeof p.cpus, &p.cpus);
  SetSignals(p.outlives ? SIG_IGN : SIG_DFL);
  // As under nohup: a terminal or session that ends is the agent's affair.
  signal(SIGHUP, SIG_IGN);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
      dup2(log, STDERR_FILENO) < 0 || dup2(control, kControlFd) < 0 ||
      dup3(pipe, kFailureFd, O_CLOEXEC) < 0 ||
      syscall(SYS_close_range, kFailureFd + 1, ~0U, 0) != 0) {
    Fail(pipe, Stage::kPrepare);
  }
  if (chdir(p.directory.c_str()) != 0) Fail(kFailureFd, Stage::kEnterDirectory);
  execve(p.program.c_str(), p.argv.data(), p.envp.data());
  Fail(kFailureFd, Stage::kExecute);
}

// The child borrows this process's memory, and this thread waits, until the child executes its
// program or exits. To copy the page tables of a service instead, and to fault in its pages again
// afterwards, would take longer than all else that starting a trial takes. No handler of this
// process may run in the child meanwhile, so signals are blocked until it has reset them. vfork
// runs no atfork handlers; those of gRPC and of malloc would take locks. Negative: errno says why.
pid_t StartChild(const Preparation& p) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = vfork();
  if (child == 0) BecomeReplica(p);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return child;
}

absl::Status CannotStart(const std::string& what, int error) {
  return absl::FailedPreconditionError(absl::StrCat("cannot start ", what, ": ", strerror(error)));
}

// Errors of execve and chdir that are of the path that is named, and so of the program.
bool IsOfPath(int error) {
  constexpr int kOfPath[] = {ENOENT, ENOTDIR, EACCES, EPERM,        ENOEXEC,
                             EISDIR, ELOOP,   E2BIG,  ENAMETOOLONG, EINVAL};
  return std::ranges::find(kOfPath, error) != std::end(kOfPath);
}

bool IsExecutable(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Those of `wanted` on which this process may run.
cpu_set_t CpusAmong(const std::vector<int>& wanted) {
  cpu_set_t named;
  cpu_set_t allowed;
  CPU_ZERO(&named);
  for (const int cpu : wanted) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &named);
  }
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) CPU_AND(&named, &named, &allowed);
  return named;
}

void LayOut(const LaunchOrder& order, Preparation& p) {
  p.cpus = CpusAmong(order.cpus);
  p.open_files = LimitOfOpenFilesAtStart();
  for (const std::string& argument : order.command) {
    p.argv.push_back(const_cast<char*>(argument.c_str()));
  }
  p.argv.push_back(nullptr);
  p.environment.reserve(order.environment.size());
  for (const auto& [name, value] : order.environment) {
    p.environment.push_back(absl::StrCat(name, "=", value));
    p.envp.push_back(p.environment.back().data());
  }
  p.envp.push_back(nullptr);
  p.directory = order.directory;
  p.parent = getpid();
  p.outlives = order.outlives;
}

// Waits until the program runs (the pipe closes) or has said why it does not.
absl::Status AwaitExec(int pipe, pid_t pid, const LaunchOrder& order) {
  Failure failure{};
  ssize_t got = 0;
  do {
    got = read(pipe, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof failure)) return absl::OkStatus();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  absl::Status status;
  switch (failure.stage) {
    case Stage::kPrepare:
      return OfTheMachine(
          CannotStart(absl::StrCat(order.command[0], " (preparing the process)"), failure.error));
    case Stage::kEnterDirectory:
      status = CannotStart(absl::StrCat(order.command[0], " in ", order.directory), failure.error);
      break;
    case Stage::kExecute:
      status = CannotStart(order.command[0], failure.error);
  }
  return IsOfPath(failure.error) ? status : OfTheMachine(status);
}

}  // namespace

absl::Status OfTheMachine(const absl::Status& error) {
  return absl::ResourceExhaustedError(error.message());
}

std::map<std::string, std::string> OwnEnvironment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

// execvpe would search the agent's own PATH; the replica's is the one that counts.
absl::StatusOr<std::string> FindProgram(const LaunchOrder& order) {
  if (order.command.empty() || order.command[0].empty()) {
    return absl::InvalidArgumentError("cannot start the trial: its command is empty");
  }
  const std::string& name = order.command[0];
  if (name.find('/') != std::string::npos) return name;
  const auto path = order.environment.find("PATH");
  const std::string folders = path == order.environment.end() ? "/usr/bin:/bin" : path->second;
  const std::vector<std::string> list = absl::StrSplit(folders, ':');
  for (const std::string& folder : list) {
    const std::string below = folder.empty() ? "." : folder;
    const std::string found = absl::StrCat(below, "/", name);
    const std::string seen_from_here =
        below[0] == '/' ? found : absl::StrCat(order.directory, "/", found);
    if (IsExecutable(seen_from_here)) return found;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot start ", name, ": not found in PATH (", folders, ")"));
}

absl::StatusOr<InheritedDescriptors> OpenInherited(const LaunchOrder& order) {
  InheritedDescriptors opened;
  opened.log =
      FileDescriptor(open(order.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!opened.log.open()) {
    return OfTheMachine(CannotStart(absl::StrCat("the trial: log ", order.log_path), errno));
  }
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return OfTheMachine(CannotStart("the trial: control socket", errno));
  }
  opened.our_control = FileDescriptor(sockets[0]);
  opened.control = FileDescriptor(sockets[1]);
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  return opened;
}

absl::StatusOr<LaunchedProcess> Launch(const LaunchOrder& order) {
  Preparation p;
  ESPALIER_ASSIGN_OR_RETURN(p.program, FindProgram(order));
  LayOut(order, p);
  const FileDescriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.open()) return OfTheMachine(CannotStart("the trial: /dev/null", errno));
  ESPALIER_ASSIGN_OR_RETURN(InheritedDescriptors inherited, OpenInherited(order));
  std::array<int, 2> pipes{};
  if (pipe2(pipes.data(), O_CLOEXEC) != 0) {
    return OfTheMachine(CannotStart("the trial: pipe", errno));
  }
  const FileDescriptor failure_in(pipes[0]);
  FileDescriptor failure_out(pipes[1]);
  p.null_input = input.get();
  p.log = inherited.log.get();
  p.control = inherited.control.get();
  p.failure = failure_out.get();

  LaunchedProcess launched;
  launched.control = std::move(inherited.our_control);
  launched.pid = StartChild(p);
  if (launched.pid < 0) return OfTheMachine(CannotStart(order.command[0], errno));
  failure_out.Close();
  ESPALIER_RETURN_IF_ERROR(AwaitExec(failure_in.get(), launched.pid, order));
  launched.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, launched.pid, 0)));
  if (!launched.pidfd.open()) {
    const int error = errno;
    kill(-launched.pid, SIGKILL);
    waitpid(launched.pid, nullptr, 0);
    return OfTheMachine(CannotStart(absl::StrCat(order.command[0], " (pidfd_open)"), error));
  }
  return launched;
}

}  // namespace espalier
