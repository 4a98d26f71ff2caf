#include "tuner/server/engines/node_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/process_start.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPidFile = "node.pid";
constexpr const char* kLogFile = "agent.log";

// By number: glibc has a function of its own from 2.36 on only, and wheels run with an older one.
int DescriptorOf(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// How a program is started that shall live on without us.
class SpawnPlan {
 public:
  explicit SpawnPlan(const std::string& log) {
    posix_spawnattr_init(&attributes_);
    // A Ctrl-C at the service's terminal is not theirs: they end when they are told to.
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    // A listening socket that lived on in them would keep the next service off its address.
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  absl::StatusOr<pid_t> Spawn(std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    const int error =
        posix_spawn(&pid, argv.front(), &actions_, &attributes_, argv.data(), environ);
    if (error == 0) return pid;
    return absl::InternalError(absl::StrCat("\"", words.front(), "\": ", std::strerror(error)));
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

struct PidRecord {
  pid_t pid = 0;
  std::string start;
  std::string service_address;
};

std::optional<PidRecord> ReadPidFile(const fs::path& path) {
  std::ifstream file(path);
  PidRecord record;
  if (file >> record.pid >> record.start >> record.service_address && record.pid > 0) return record;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<NodeProcess> NodeProcess::Start(const Plan& plan) {
  const fs::path folder = fs::path(plan.directory) / plan.name;
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(folder.string()));
  std::vector<std::string> words = {plan.executable, "agent",   "--join", plan.grpc_address,
                                    "--name",        plan.name, "--dir",  folder.string()};
  // All nodes are on this machine: what one writes the others see.
  words.insert(words.end(), {"--shared-dir", plan.checkpoints});
  if (!plan.http_address.empty()) words.insert(words.end(), {"--http", plan.http_address});
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  ESPALIER_ASSIGN_OR_RETURN(const pid_t pid,
                            SpawnPlan((folder / kLogFile).string()).Spawn(std::move(words)));
  // Our child is there until it is waited for, so that the number is its.
  const int descriptor = DescriptorOf(pid);
  const std::string pid_file = (folder / kPidFile).string();
  const absl::Status written = WritePrivateFile(
      pid_file, absl::StrCat(pid, " ", ProcessStart(pid), " ", plan.grpc_address, "\n"));
  if (descriptor < 0 || !written.ok()) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return written.ok() ? absl::InternalError(absl::StrCat("pidfd_open of ", plan.name)) : written;
  }
  return NodeProcess(plan.name, plan.grpc_address, pid_file, pid, descriptor);
}

std::vector<NodeProcess> NodeProcess::Find(const std::string& directory) {
  std::vector<NodeProcess> found;
  std::error_code error;
  for (const fs::directory_entry& entry : FolderEntries(directory, error)) {
    const fs::path pid_file = entry.path() / kPidFile;
    const std::optional<PidRecord> record = ReadPidFile(pid_file);
    if (!record) continue;
    // The descriptor first: what is true of the number then stays true of it.
    const int descriptor = DescriptorOf(record->pid);
    if (descriptor >= 0 && ProcessStart(record->pid) == record->start) {
      found.push_back(NodeProcess(entry.path().filename().string(), record->service_address,
                                  pid_file.string(), record->pid, descriptor));
      continue;
    }
    if (descriptor >= 0) close(descriptor);
    fs::remove(pid_file, error);
  }
  return found;
}

NodeProcess::NodeProcess(NodeProcess&& other) noexcept
    : name_(std::move(other.name_)),
      service_address_(std::move(other.service_address_)),
      pid_file_(std::move(other.pid_file_)),
      pid_(other.pid_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

NodeProcess::~NodeProcess() {
  if (descriptor_ >= 0) close(descriptor_);
}

void NodeProcess::Signal(int signal) const {
  syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0);
}

bool NodeProcess::Ended() const {
  pollfd entry{descriptor_, POLLIN, 0};
  if (poll(&entry, 1, 0) <= 0 || (entry.revents & POLLIN) == 0) return false;
  waitpid(pid_, nullptr, WNOHANG);  // if it is a child of ours
  std::error_code error;
  fs::remove(pid_file_, error);
  return true;
}

}  // namespace espalier
