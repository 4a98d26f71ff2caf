#include "trial_runner/control/fork_point.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_descriptor.h"
#include "base/private_files.h"
#include "base/protocol.h"

extern char** environ;

namespace espalier {
namespace {

using Variables = std::map<std::string, std::string>;

// As trial_runner/agent/processes/launch.h has it.
constexpr int kSocket = 3;
// What a program may hold of its own: a zygote has it beside its replicas.
constexpr std::int64_t kMaxOwnMemory_bytes = std::int64_t{1} << 30;

// Without the descriptor that reads them.
std::vector<std::string> NamesIn(const char* folder, bool of_descriptors) {
  std::vector<std::string> names;
  DIR* const open = opendir(folder);
  if (open == nullptr) return names;
  const std::string own = of_descriptors ? std::to_string(dirfd(open)) : "";
  while (const dirent* entry = readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && name != own) names.push_back(name);
  }
  closedir(open);
  return names;
}

std::string LinkOf(const std::string& descriptor) {
  std::array<char, 256> target{};
  const std::string path = absl::StrCat("/proc/self/fd/", descriptor);
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  return {target.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

// Descriptors that are shared have one place in their file, and one end of a connection.
std::string OpenFiles() {
  static const std::set<std::string> given = {"0", "1", "2", std::to_string(kSocket)};
  for (const std::string& descriptor : NamesIn("/proc/self/fd", true)) {
    if (!given.contains(descriptor)) return absl::StrCat("it has ", LinkOf(descriptor), " open");
  }
  if (LinkOf("0") != "/dev/null") return "its input is not the one that it was given";
  const std::string output = LinkOf("1");
  const bool to_memory = output.starts_with(absl::StrCat("/memfd:", kZygoteOutput));
  if (output != LinkOf("2") || to_memory != (std::getenv(kZygoteVariable) != nullptr)) {
    return "its output does not go where it was to go";
  }
  return "";
}

// A driver that is initialised does not survive a fork.
bool CudaIsInitialised() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  constexpr int kNotInitialised = 3;  // CUDA_ERROR_NOT_INITIALIZED
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  const bool initialised = count != nullptr && count(&devices) != kNotInitialised;
  dlclose(driver);
  return initialised;
}

std::int64_t OwnMemory() {
  std::istringstream pages(TextOfFile("/proc/self/statm"));
  std::int64_t size = 0;
  std::int64_t resident = 0;
  std::int64_t shared = 0;
  pages >> size >> resident >> shared;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

void FlushOutput() {
  std::cout.flush();
  std::cerr.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

void SayToAgent(std::string_view text) {
  // A zygote whose agent is gone has nobody to serve, and ends at its next word.
  [[maybe_unused]] const ssize_t sent = send(kSocket, text.data(), text.size(), MSG_NOSIGNAL);
}

Variables ReadVariables(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return variables;
}

Variables VariablesAtStart() {
  const std::string all = TextOfFile("/proc/self/environ");
  return ReadVariables(absl::StrSplit(all, '\0', absl::SkipEmpty()));
}

Variables VariablesNow() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return ReadVariables(entries);
}

// What the program was before it was forked.
struct Origin {
  Variables at_start;
  Variables now;
  std::array<char, 16> name{};  // of the process
};

// What the agent asks for.
struct Order {
  std::array<FileDescriptor, 4> descriptors;
  FileDescriptor& fields() { return descriptors[0]; }
  FileDescriptor& log() { return descriptors[1]; }
  FileDescriptor& control() { return descriptors[2]; }
  FileDescriptor& leave() { return descriptors[3]; }
};

// nullopt: the agent is gone.
std::optional<Order> AwaitOrder() {
  char byte = 0;
  iovec content{&byte, 1};
  std::array<int, 4> numbers{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof numbers)> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got <= 0 || header == nullptr || header->cmsg_len != CMSG_LEN(sizeof numbers)) {
    return std::nullopt;
  }
  std::memcpy(numbers.data(), CMSG_DATA(header), sizeof numbers);
  Order order;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    order.descriptors[i] = FileDescriptor(numbers[i]);
  return order;
}

// True: in the replica, whose parent is the agent by now. Where it cannot be, the agent sees that
// nobody holds the replica's descriptors.
bool ForkReplica() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  FileDescriptor orphaned(ends[0]);
  FileDescriptor orphan(ends[1]);
  const pid_t between = fork();
  if (between == 0) {
    if (fork() != 0) _exit(0);
    orphan.Close();
    char none = 0;
    while (read(orphaned.get(), &none, 1) < 0 && errno == EINTR) {
    }
    return true;
  }
  orphaned.Close();
  while (between > 0 && waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return false;
}

// Has /proc/PID/environ show these, for those who look for the process there. The kernel may be
// built without this; then it shows the zygote's.
void ShowVariables(const Variables& variables) {
  static std::string shown;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&shown, name, "=", value);
    shown.append(1, '\0');
  }
  const std::string line = TextOfFile("/proc/self/stat");
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::vector<std::uint64_t> numbers(4);  // proc(5) counts from 1, and the third is a letter
  std::string field;
  fields >> field;
  while (fields >> field) {
    std::uint64_t number = 0;
    [[maybe_unused]] const bool negative = !absl::SimpleAtoi(field, &number);
    numbers.push_back(number);
  }
  if (numbers.size() < 52) return;
  prctl_mm_map layout{};
  layout.start_code = numbers[26];
  layout.end_code = numbers[27];
  layout.start_stack = numbers[28];
  layout.start_data = numbers[45];
  layout.end_data = numbers[46];
  layout.start_brk = numbers[47];
  layout.brk = reinterpret_cast<std::uint64_t>(sbrk(0));
  layout.arg_start = numbers[48];
  layout.arg_end = numbers[49];
  layout.env_start = reinterpret_cast<std::uint64_t>(shown.data());
  layout.env_end = layout.env_start + shown.size();
  layout.exe_fd = ~0U;  // stays
  prctl(PR_SET_MM, PR_SET_MM_MAP, &layout, sizeof layout, 0);
}

// The order's, with what the program itself has changed until here.
void SetVariables(Variables given, const Origin& origin) {
  ShowVariables(given);
  for (const auto& [name, value] : origin.now) {
    const auto before = origin.at_start.find(name);
    if (before == origin.at_start.end() || before->second != value) given[name] = value;
  }
  for (const auto& [name, value] : origin.at_start) {
    if (!origin.now.contains(name)) given.erase(name);
  }
  clearenv();
  for (const auto& [name, value] : given) setenv(name.c_str(), value.c_str(), 1);
}

std::string ReadFrom(const FileDescriptor& memory) {
  std::string text;
  std::array<char, 4096> chunk;
  ssize_t got = 0;
  while ((got = pread(memory.get(), chunk.data(), chunk.size(), static_cast<off_t>(text.size()))) >
         0) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// Makes this process what a new one would be, and begins when the agent says so. False: the agent
// starts it as others are started.
bool Enter(Order& order, const Origin& origin) {
  // Each ends with a zero byte: the agent, the folder, what is run, its place, the number of words,
  // the words, and the variables.
  const std::vector<std::string> fields = absl::StrSplit(ReadFrom(order.fields()), '\0');
  constexpr std::size_t kBeforeWords = 5;
  pid_t agent = 0;
  std::size_t words = 0;
  if (fields.size() < kBeforeWords + 1 || !absl::SimpleAtoi(fields[0], &agent) ||
      !absl::SimpleAtoi(fields[4], &words) || words > fields.size() - kBeforeWords) {
    return false;
  }
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != agent || setpgid(0, 0) != 0 ||
      dup2(order.log().get(), STDOUT_FILENO) < 0 || dup2(order.log().get(), STDERR_FILENO) < 0 ||
      dup2(order.control().get(), kSocket) < 0 || chdir(fields[1].c_str()) != 0) {
    return false;
  }
  prctl(PR_SET_NAME, origin.name.data());
  const auto variables = fields.begin() + static_cast<std::ptrdiff_t>(kBeforeWords + words);
  SetVariables(ReadVariables({variables, fields.end()}), origin);
  const std::string number = absl::StrCat(getpid(), "\n");
  const int leave = order.leave().get();
  char go = 0;
  return send(leave, number.data(), number.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(number.size()) &&
         recv(leave, &go, 1, 0) == 1;
}

}  // namespace

std::string ForkObstacle() {
  if (getpgrp() != getpid()) return "it is not the process that its agent has started";
  const std::size_t threads = NamesIn("/proc/self/task", false).size();
  if (threads != 1) return absl::StrCat("it has ", threads, " threads");
  // Says more than that the driver's files are open.
  if (CudaIsInitialised()) return "it has initialised CUDA";
  if (std::string open = OpenFiles(); !open.empty()) return open;
  if (!TextOfFile(absl::StrCat("/proc/self/task/", getpid(), "/children")).empty()) {
    return "it has processes of its own";
  }
  if (const std::int64_t bytes = OwnMemory(); bytes > kMaxOwnMemory_bytes) {
    return absl::StrCat("it holds ", bytes >> 20, " MB, want at most ", kMaxOwnMemory_bytes >> 20);
  }
  return "";
}

void BeForked() {
  if (std::getenv(kZygoteVariable) == nullptr || getpgrp() != getpid()) return;
  FlushOutput();
  if (const std::string obstacle = ForkObstacle(); !obstacle.empty()) {
    SayToAgent(absl::StrCat("no ", obstacle, "\n"));
    _exit(1);
  }
  Origin origin{.at_start = VariablesAtStart(), .now = VariablesNow()};
  prctl(PR_GET_NAME, origin.name.data());
  prctl(PR_SET_NAME, "zygote");
  SayToAgent("ready\n");
  while (true) {
    std::optional<Order> order = AwaitOrder();
    if (!order) _exit(0);
    if (!ForkReplica()) continue;
    if (!Enter(*order, origin)) _exit(127);
    return;
  }
}

}  // namespace espalier
