#include "trial_runner/agent/zygotes/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/protocol.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxSaid_bytes = 4096;
constexpr std::chrono::seconds kForksWithin{10};  // of one's own zygote

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(errno)));
}

// What the replica is to be.
std::string Fields(const LaunchOrder& order, const ForkableCommand& command) {
  std::string fields;
  const auto add = [&fields](const std::string& text) { fields.append(text).append(1, '\0'); };
  add(absl::StrCat(getpid()));
  add(order.directory);
  add(command.runs);
  add(absl::StrCat(command.program));
  add(absl::StrCat(order.command.size()));
  for (const std::string& word : order.command) add(word);
  for (const auto& [name, value] : order.environment) add(absl::StrCat(name, "=", value));
  return fields;
}

bool WriteAll(const FileDescriptor& file, std::string_view left) {
  while (!left.empty()) {
    const ssize_t wrote = write(file.get(), left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

absl::StatusOr<FileDescriptor> WriteToMemory(const std::string& text) {
  FileDescriptor file(memfd_create("espalier-replica", MFD_CLOEXEC));
  if (!file.open() || !WriteAll(file, text)) return Failed("memory for the order");
  return file;
}

// One byte with the descriptors.
absl::Status SendDescriptors(int socket, const std::array<int, 4>& descriptors) {
  char byte = 'f';
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return absl::OkStatus();
  return Failed("the order cannot be sent");
}

// The replica's number, which it says once it is this process's child and all is in its place.
absl::StatusOr<pid_t> AwaitReplica(int leave, Zygote::Clock::duration within) {
  const auto until = Zygote::Clock::now() + within;
  std::string said;
  while (!said.ends_with('\n')) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - Zygote::Clock::now()).count();
    pollfd news{leave, POLLIN, 0};
    const int ready = left > 0 ? poll(&news, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return absl::DeadlineExceededError("it does not fork");
    std::array<char, 32> chunk;
    const ssize_t got = recv(leave, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got <= 0) return absl::UnavailableError("it could not fork, or has ended");
    said.append(chunk.data(), static_cast<std::size_t>(got));
  }
  pid_t pid = 0;
  if (absl::SimpleAtoi(said, &pid) && pid > 0) return pid;
  return absl::InternalError("the replica has not said its number");
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Zygote>> Zygote::Start(const ForkableCommand& command,
                                                      const std::string& log_path) {
  LaunchOrder own = command.zygote;
  own.log_path = log_path;
  FileDescriptor output;
  if (command.native()) {
    output = FileDescriptor(memfd_create(kZygoteOutput, MFD_CLOEXEC));
    if (!output.open()) return Failed("memory for its output");
    own.log_path = absl::StrCat("/proc/self/fd/", output.get());
  }
  ESPALIER_ASSIGN_OR_RETURN(LaunchedProcess process, Launch(own));
  return std::make_unique<Zygote>(std::move(process), std::move(output));
}

std::unique_ptr<Zygote> Zygote::Own() {
  const char* const told = std::getenv(kOwnZygoteVariable);
  if (told == nullptr) return nullptr;
  const std::vector<std::string> words = absl::StrSplit(told, ' ');
  unsetenv(kOwnZygoteVariable);
  LaunchedProcess process;
  int control = -1;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &process.pid) || process.pid <= 0 ||
      !absl::SimpleAtoi(words[1], &control) || fcntl(control, F_SETFD, FD_CLOEXEC) != 0) {
    return nullptr;
  }
  fcntl(control, F_SETFL, O_NONBLOCK);
  process.control = FileDescriptor(control);
  auto own = std::make_unique<Zygote>(std::move(process), FileDescriptor());
  own->BeReady();
  return own;
}

Zygote::~Zygote() {
  kill(-process_.pid, SIGKILL);
  Reap(process_.pid);
}

void Zygote::Hear() {
  if (state_ == State::kEnded) return;
  std::array<char, 1024> chunk;
  ssize_t got = 0;
  do {
    got = recv(process_.control.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) said_.append(chunk.data(), static_cast<std::size_t>(got));
  } while ((got > 0 && said_.size() < kMaxSaid_bytes) || (got < 0 && errno == EINTR));
  const bool open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  if (said_ == "ready\n" && open) {
    if (!was_ready_) BeReady();
  } else if (said_.starts_with("no ") && said_.ends_with('\n')) {
    refusal_ = said_.substr(3, said_.size() - 4);
    state_ = State::kEnded;
  } else if (!open || said_.size() >= kMaxSaid_bytes) {
    state_ = State::kEnded;
  }
}

void Zygote::BeReady() {
  was_ready_ = true;
  state_ = State::kReady;
  if (!output_.open()) return;
  struct stat output {};
  fstat(output_.get(), &output);
  if (output.st_size > kMaxPrinted_bytes) {
    refusal_ =
        absl::StrCat("it prints ", output.st_size, " bytes, want at most ", kMaxPrinted_bytes);
    state_ = State::kEnded;
    return;
  }
  printed_.resize(static_cast<std::size_t>(output.st_size));
  if (pread(output_.get(), printed_.data(), printed_.size(), 0) != output.st_size) {
    state_ = State::kEnded;
  }
}

absl::StatusOr<LaunchedProcess> Zygote::Fork(const LaunchOrder& order,
                                             const ForkableCommand& command,
                                             Clock::duration within) {
  ESPALIER_ASSIGN_OR_RETURN(InheritedDescriptors inherited, OpenInherited(order));
  ESPALIER_ASSIGN_OR_RETURN(FileDescriptor fields, WriteToMemory(Fields(order, command)));
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Failed("socket");
  }
  const FileDescriptor leave(sockets[0]);
  FileDescriptor their_leave(sockets[1]);
  // The one between the zygote and the replica ends at once, and its child becomes ours. (An agent
  // adopts orphans at any time: leftovers.h.)
  int adopts = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const absl::Cleanup as_before = [&] { prctl(PR_SET_CHILD_SUBREAPER, adopts, 0, 0, 0); };
  ESPALIER_RETURN_IF_ERROR(SendDescriptors(
      process_.control.get(),
      {fields.get(), inherited.log.get(), inherited.control.get(), their_leave.get()}));
  their_leave.Close();
  LaunchedProcess replica;
  ESPALIER_ASSIGN_OR_RETURN(replica.pid, AwaitReplica(leave.get(), within));
  replica.pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, replica.pid, 0)));
  siginfo_t ended{};
  const auto held = static_cast<id_t>(replica.pidfd.get());
  if (!replica.pidfd.open() || waitid(P_PIDFD, held, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return Failed("the replica is not this process's child");
  }
  // Not sooner: whoever is started in its place would print this again. Where a log cannot be
  // written, no process is told.
  WriteAll(inherited.log, printed_);
  // Until now it waits, and ends where nobody tells it to begin.
  if (send(leave.get(), "g", 1, MSG_NOSIGNAL) != 1) {
    const absl::Status failed = Failed("the replica has ended");
    Reap(replica.pid);
    return failed;
  }
  replica.control = std::move(inherited.our_control);
  return replica;
}

absl::StatusOr<LaunchedProcess> ForkOrLaunch(std::unique_ptr<Zygote>& zygote,
                                             const LaunchOrder& order,
                                             const ForkableCommand& command) {
  if (zygote != nullptr) {
    absl::StatusOr<LaunchedProcess> forked = zygote->Fork(order, command, kForksWithin);
    if (forked.ok()) return forked;
    zygote.reset();
  }
  return Launch(order);
}

}  // namespace espalier
