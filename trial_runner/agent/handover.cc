#include "trial_runner/agent/handover.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/open_files.h"
#include "base/private_files.h"
#include "base/protocol.h"

namespace espalier {

absl::StatusOr<FileDescriptor> WriteHandover(const v1::AgentHandover& handover) {
  FileDescriptor file(memfd_create("espalier-handover", MFD_CLOEXEC));
  const std::string bytes = handover.SerializeAsString();
  std::string_view left = bytes;
  while (file.open() && !left.empty()) {
    const ssize_t wrote = write(file.get(), left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (file.open() && left.empty()) return file;
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", bytes.size(), " bytes to memory: ", std::strerror(errno)));
}

absl::StatusOr<v1::AgentHandover> ReadHandover(const std::string& path) {
  v1::AgentHandover handover;
  if (!handover.ParseFromString(TextOfFile(path)) || handover.format() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is not what an agent hands over to its successor"));
  }
  if (handover.format() < kOldestHandoverFormat || handover.format() > kHandoverFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the running agent (release ", handover.release(), ") hands over in format ",
        handover.format(), ", this program (release ", Release(), ") reads ", kOldestHandoverFormat,
        " to ", kHandoverFormat,
        ": replace it by a release between the two first, or drain the node and start it anew"));
  }
  return handover;
}

void ForgetHandover(const std::string& path) {
  constexpr std::string_view kOwn = "/proc/self/fd/";
  int descriptor = -1;
  if (path.starts_with(kOwn) && absl::SimpleAtoi(path.substr(kOwn.size()), &descriptor)) {
    close(descriptor);
  }
}

std::vector<int> DescriptorsOf(const v1::AgentHandover& handover) {
  std::vector<int> all = {handover.lock()};
  if (handover.has_service_listener()) all.push_back(handover.service_listener());
  if (handover.has_http_listener()) all.push_back(handover.http_listener());
  for (const auto* replicas : {&handover.running(), &handover.spares()}) {
    for (const v1::HandedReplica& replica : *replicas) {
      all.push_back(replica.pidfd());
      if (replica.control() >= 0) all.push_back(replica.control());
    }
  }
  return all;
}

absl::Status Become(const std::string& executable, const std::vector<std::string>& arguments,
                    const std::vector<int>& kept) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // One that comes now waits until the next program has its handlers.
  sigset_t all;
  sigset_t former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  // Our libraries' descriptors are not the next program's, whatever they were opened with.
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int descriptor : kept) fcntl(descriptor, F_SETFD, 0);
  // It is to know what its own programs begin with, as this one does.
  const rlimit open_files = LimitOfOpenFilesAtStart();
  setrlimit(RLIMIT_NOFILE, &open_files);
  execve(executable.c_str(), argv.data(), environ);
  const int error = errno;
  RaiseLimitOfOpenFiles();
  for (const int descriptor : kept) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return absl::FailedPreconditionError(
      absl::StrCat("cannot execute ", executable, ": ", std::strerror(error)));
}

void CloseOnExec(const v1::AgentHandover& handover) {
  for (const int descriptor : DescriptorsOf(handover)) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

}  // namespace espalier
