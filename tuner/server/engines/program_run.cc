#include "tuner/server/engines/program_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/launcher_variables.h"
#include "base/spawned_program.h"

namespace espalier {

namespace {

constexpr double kReapPace_s = 0.02;
constexpr double kWatchPace_s = 0.05;

// A pipe, of which the child gets one end: not a socket, which /dev/stdin does not open.
class Channel {
 public:
  enum class Way { kToChild, kFromChild };
  explicit Channel(Way way) {
    if (pipe2(ends_, O_CLOEXEC) != 0) return;
    if (way == Way::kToChild) std::swap(ends_[0], ends_[1]);
    fcntl(ours(), F_SETFL, O_NONBLOCK);
  }
  ~Channel() {
    CloseTheirs();
    CloseOurs();
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int ours() const { return ends_[0]; }
  int theirs() const { return ends_[1]; }
  bool open() const { return ends_[0] >= 0; }
  void CloseOurs() { Close(ends_[0]); }
  void CloseTheirs() { Close(ends_[1]); }

 private:
  static void Close(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  int ends_[2] = {-1, -1};
};

// Of a job that we may be in ourselves, which a batch system would give to the job that it is to
// start, and what would narrow a list of jobs, or a request to end some, to less than was asked
// for. What users set for their own jobs stays (SBATCH_PARTITION).
bool IsOfOtherJobs(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  if (name.starts_with("SBATCH_")) return name == "SBATCH_WAIT" || name == "SBATCH_ARRAY_INX";
  return IsOfALauncher(name);
}

std::vector<std::string> Environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!IsOfOtherJobs(*entry)) all.emplace_back(*entry);
  }
  return all;
}

// Reads what is there. False: the other end is closed.
bool ReadSome(const Channel& channel, std::string& text) {
  char buffer[1 << 14];
  const ssize_t count = read(channel.ours(), buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void WriteSome(Channel& channel, std::string_view& left) {
  const ssize_t count = write(channel.ours(), left.data(), left.size());
  if (count > 0) left.remove_prefix(static_cast<std::size_t>(count));
  const bool closed = count < 0 && errno != EAGAIN && errno != EINTR;
  if (left.empty() || closed) channel.CloseOurs();
}

int Milliseconds(double seconds) {
  return static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 1e6) * 1000));
}

// A program that runs.
struct Running {
  const ProgramRun& run;
  pid_t pid = 0;
  Time until;
};

// Why it is to be ended; OK: it may go on.
absl::Status MayGoOn(const Running& running, const ProgramEnd& end) {
  const std::string& program = running.run.command.front();
  if (end.output.size() + end.errors.size() > kMostProgramOutput) {
    return absl::ResourceExhaustedError(
        absl::StrCat("\"", program, "\" says more than ", kMostProgramOutput, " bytes"));
  }
  if (SecondsBetween(Now(), running.until) <= 0) {
    return absl::DeadlineExceededError(
        absl::StrFormat("\"%s\" has not ended within %g s", program, running.run.limit_s));
  }
  return running.run.watch ? running.run.watch(running.pid) : absl::OkStatus();
}

// Until both outputs are closed.
absl::Status Converse(const Running& running, Channel& in, Channel& out, Channel& errors,
                      ProgramEnd& end) {
  std::string_view input = running.run.input;
  if (input.empty()) in.CloseOurs();
  while (out.open() || errors.open()) {
    ESPALIER_RETURN_IF_ERROR(MayGoOn(running, end));
    double left_s = SecondsBetween(Now(), running.until);
    if (running.run.watch) left_s = std::min(left_s, kWatchPace_s);
    pollfd watched[] = {{in.ours(), POLLOUT, 0},
                        {out.ours(), POLLIN, 0},
                        {errors.ours(), POLLIN, 0}};  // those that are closed are passed over
    poll(watched, std::size(watched), Milliseconds(left_s));
    if (watched[0].revents != 0) WriteSome(in, input);
    if (watched[1].revents != 0 && !ReadSome(out, end.output)) out.CloseOurs();
    if (watched[2].revents != 0 && !ReadSome(errors, end.errors)) errors.CloseOurs();
  }
  return absl::OkStatus();
}

// What it has started may have closed its outputs before it ends.
absl::Status Reap(const Running& running, const ProgramEnd& end, int& status) {
  while (waitpid(running.pid, &status, WNOHANG) == 0) {
    ESPALIER_RETURN_IF_ERROR(MayGoOn(running, end));
    poll(nullptr, 0, Milliseconds(kReapPace_s));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramEnd> RunProgram(const ProgramRun& run) {
  const Time until = After(Now(), run.limit_s);
  Channel in(Channel::Way::kToChild);
  Channel out(Channel::Way::kFromChild);
  Channel errors(Channel::Way::kFromChild);
  if (!in.open() || !out.open() || !errors.open()) {
    return absl::ResourceExhaustedError(absl::StrCat("\"", run.command.front(), "\" cannot be ",
                                                     "started: ", std::strerror(errno)));
  }
  ESPALIER_ASSIGN_OR_RETURN(
      const pid_t pid,
      SpawnProgram(run.command, Environment(), {in.theirs(), out.theirs(), errors.theirs()}));
  // To write to a pipe that nobody can read would be a signal: the end of `in` stays open.
  for (Channel* channel : {&out, &errors}) channel->CloseTheirs();
  const Running running{.run = run, .pid = pid, .until = until};
  ProgramEnd end;
  int status = 0;
  absl::Status done = Converse(running, in, out, errors, end);
  if (done.ok()) done = Reap(running, end, status);
  if (!done.ok()) {
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    return done;
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

std::string FailureOf(const std::string& program, const ProgramEnd& end) {
  std::string_view text = end.errors;
  const std::size_t last = text.find_last_not_of(" \r\n");
  if (last == std::string_view::npos) {
    return absl::StrCat("\"", program, "\" ended with exit code ", end.exit_code);
  }
  text = text.substr(0, last + 1);
  const std::size_t line = text.rfind('\n');
  if (line != std::string_view::npos) text.remove_prefix(line + 1);
  return std::string(text);
}

}  // namespace espalier
