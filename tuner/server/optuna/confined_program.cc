#include "tuner/server/optuna/confined_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/spawned_program.h"

namespace espalier {

namespace {

constexpr std::size_t kLastWords = 2000;
constexpr double kIsWork = 0.01;  // share of a processor
constexpr double kEndWait_s = 1;  // for a program that has closed its outputs

// Readable once it is asked to stop.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop)
      : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), tell_(stop, Tell{event_.get()}) {}
  int fd() const { return event_.get(); }

 private:
  struct Tell {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
    }
  };
  FileDescriptor event_;
  std::stop_callback<Tell> tell_;
};

// Or for a disk, on a machine that has little time for it.
bool WaitsForAProcessor(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(") ");
  if (name_ends == std::string::npos || name_ends + 2 >= line.size()) return false;
  return line[name_ends + 2] == 'R' || line[name_ends + 2] == 'D';
}

int WholeMilliseconds(double seconds) {
  return static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 1e6) * 1000));
}

bool MayComeLater(ssize_t count) { return count < 0 && (errno == EAGAIN || errno == EINTR); }

// The line that `read` holds, which is taken out of it.
std::optional<std::string> TakeLine(std::string& read) {
  const std::size_t end = read.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = read.substr(0, end);
  read.erase(0, end + 1);
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConfinedProgram>> ConfinedProgram::Start(
    std::vector<std::string> command, std::vector<std::string> environment) {
  int lines[2] = {-1, -1};
  int errors[2] = {-1, -1};
  const bool open = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines) == 0 &&
                    pipe2(errors, O_CLOEXEC) == 0;
  FileDescriptor ours(lines[0]);
  const FileDescriptor theirs(lines[1]);
  FileDescriptor our_errors(errors[0]);
  const FileDescriptor their_errors(errors[1]);
  if (!open) {
    return absl::NotFoundError(
        absl::StrCat("\"", command.front(), "\" cannot be started: ", std::strerror(errno)));
  }
  ESPALIER_ASSIGN_OR_RETURN(const pid_t pid,
                            SpawnProgram(std::move(command), std::move(environment),
                                         {theirs.get(), theirs.get(), their_errors.get()}));
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  fcntl(our_errors.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ConfinedProgram>(
      new ConfinedProgram(pid, std::move(ours), std::move(our_errors)));
}

ConfinedProgram::~ConfinedProgram() {
  if (pid_ == 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

double ConfinedProgram::ProcessorSeconds() const {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

bool ConfinedProgram::ReadErrors() {
  char buffer[1 << 12];
  const ssize_t count = read(errors_.get(), buffer, sizeof buffer);
  if (count > 0) last_words_.append(buffer, static_cast<std::size_t>(count));
  if (count == 0) errors_.Close();
  if (last_words_.size() > 2 * kLastWords) {
    last_words_.erase(0, last_words_.size() - kLastWords);
  }
  return count > 0;
}

absl::Status ConfinedProgram::HowItEnded() {
  int status = 0;
  const Time until = After(Now(), kEndWait_s);
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (SecondsBetween(Now(), until) <= 0) return absl::AbortedError("it has closed its output");
    poll(nullptr, 0, 1);
  }
  kill(-pid_, SIGKILL);  // what it has started
  pid_ = 0;
  while (ReadErrors()) {
  }
  std::string words(absl::StripAsciiWhitespace(last_words_));
  words.erase(0, words.rfind('\n') + 1);
  const std::string said = words.empty() ? "" : absl::StrCat(": ", words);
  if (!WIFSIGNALED(status)) {
    return absl::AbortedError(absl::StrCat("it ended with exit code ", WEXITSTATUS(status), said));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGXCPU) {
    return absl::ResourceExhaustedError("it needed more processor time than it may have");
  }
  return absl::AbortedError(
      absl::StrCat("it was ended by signal ", signal, " (", strsignal(signal), ")", said));
}

absl::StatusOr<std::string> ConfinedProgram::Exchange(std::string_view text, double limit_s,
                                                      const std::stop_token& stop) {
  const StopSignal stopped(stop);
  Time until = After(Now(), limit_s);
  double used_s = ProcessorSeconds();
  while (true) {
    if (text.empty()) {
      if (std::optional<std::string> line = TakeLine(read_)) return *std::move(line);
    }
    if (stop.stop_requested()) return absl::CancelledError("it is not asked any more");
    if (read_.size() > kMostAnswerBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("it said a line of more than ", kMostAnswerBytes, " bytes"));
    }
    const double left_s = SecondsBetween(Now(), until);
    if (left_s <= 0) {
      const double before_s = std::exchange(used_s, ProcessorSeconds());
      if (used_s - before_s > kIsWork * limit_s || WaitsForAProcessor(pid_)) {
        until = After(Now(), limit_s);
        continue;
      }
      return absl::DeadlineExceededError(
          absl::StrFormat("it has not answered within %g s", limit_s));
    }
    const auto wanted = static_cast<short>(text.empty() ? POLLIN : POLLIN | POLLOUT);
    pollfd watched[] = {
        {lines_.get(), wanted, 0}, {errors_.get(), POLLIN, 0}, {stopped.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), WholeMilliseconds(left_s));
    if (watched[1].revents != 0) ReadErrors();
    if ((watched[0].revents & POLLOUT) != 0) {
      const ssize_t count = send(lines_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0 && !MayComeLater(count)) return HowItEnded();
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    if ((watched[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      char buffer[1 << 14];
      const ssize_t count = read(lines_.get(), buffer, sizeof buffer);
      if (count == 0 || (count < 0 && !MayComeLater(count))) return HowItEnded();
      if (count > 0) read_.append(buffer, static_cast<std::size_t>(count));
    }
  }
}

}  // namespace espalier
