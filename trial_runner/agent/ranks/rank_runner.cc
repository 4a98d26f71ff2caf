#include "trial_runner/agent/ranks/rank_runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/agent/processes/launch.h"
#include "trial_runner/agent/ranks/rank_files.h"
#include "trial_runner/agent/ranks/rank_messages.h"
#include "trial_runner/agent/zygotes/forkable_command.h"
#include "trial_runner/agent/zygotes/zygote.h"

namespace espalier {
namespace {

// Its first argument; the address, the replica's log, the option that takes the rank (or "-") and
// the command follow.
constexpr std::string_view kRunRank = "--run-rank";
constexpr int kFirstWord = 5;
constexpr std::string_view kNoOption = "-";
constexpr int kNotStarted = 127;  // as shells say it

int RankNumber(const std::map<std::string, std::string>& variables, const std::string& name,
               int otherwise) {
  const auto found = variables.find(name);
  int number = 0;
  return found != variables.end() && absl::SimpleAtoi(found->second, &number) ? number : otherwise;
}

FileDescriptor WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int each : {SIGTERM, SIGINT, SIGQUIT}) sigaddset(&watched, each);
  // As of all processes of trials; torchrun, which catches it, starts its ranks without.
  signal(SIGHUP, SIG_IGN);
  sigprocmask(SIG_SETMASK, &watched, nullptr);
  return FileDescriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

class Runner {
 public:
  Runner(std::string replica_log, std::string option, std::vector<std::string> command)
      : replica_log_(std::move(replica_log)), option_(std::move(option)) {
    order_.command = std::move(command);
    order_.directory = std::filesystem::current_path().string();
    order_.environment = OwnEnvironment();
  }

  // The command's end, once all ranks have ended.
  RankEnd Run(const std::string& address);

 private:
  void Prepare();
  bool Start();
  void Await();
  void Terminate();
  void Reap();

  const std::string replica_log_;
  const std::string option_;
  std::unique_ptr<Zygote> zygote_ = Zygote::Own();  // while it starts the command
  LaunchOrder order_;
  int rank_ = 0;
  std::string error_file_;
  FileDescriptor supervisor_;
  FileDescriptor signals_;
  LaunchedProcess process_;
  bool terminated_ = false;
  RankEnd end_;
};

// What the launcher has said of the rank, and left out. Where there is one process a node, that is
// one.
void Runner::Prepare() {
  auto& variables = order_.environment;
  rank_ = RankNumber(variables, "RANK", RankNumber(variables, "NODE_RANK", 0));
  const int local = RankNumber(variables, "LOCAL_RANK", rank_);
  if (option_ != kNoOption) order_.command.push_back(absl::StrCat(option_, local));
  if (const auto gpus = variables.extract(kRankGpusVariable); !gpus.empty()) {
    variables["CUDA_VISIBLE_DEVICES"] = gpus.mapped();
  }
  std::string& error_file = variables["TORCHELASTIC_ERROR_FILE"];
  if (error_file.empty()) error_file = RankErrorFile(replica_log_, rank_);
  error_file_ = error_file;
  order_.log_path = RankLog(replica_log_, rank_);
}

bool Runner::Start() {
  const auto command = ReadForkableCommand(order_, {});
  if (!command || command->native()) zygote_.reset();
  absl::StatusOr<LaunchedProcess> started =
      ForkOrLaunch(zygote_, order_, command.value_or(ForkableCommand{}));
  zygote_.reset();
  if (started.ok()) {
    process_ = *std::move(started);
    process_.control.Close();  // a rank speaks over HTTP
    return true;
  }
  end_ = {.exit_code = kNotStarted, .at_ns = RankClock_ns()};
  if (std::FILE* const log = std::fopen(order_.log_path.c_str(), "a"); log != nullptr) {
    std::fprintf(log, "%s\n", std::string(started.status().message()).c_str());
    std::fclose(log);
  }
  return false;
}

void Runner::Terminate() {
  if (!std::exchange(terminated_, true)) kill(process_.pid, SIGTERM);
}

// What is left of the group has nobody to work for. Its number is not another's yet.
void Runner::Reap() {
  kill(-process_.pid, SIGKILL);
  end_ = ReapRank(process_.pid);
  struct stat note {};
  if (end_.well() || stat(error_file_.c_str(), &note) != 0) return;
  end_.at_ns = TimeOfRank_ns(note.st_mtim);
  end_.noted = true;
}

void Runner::Await() {
  std::array<pollfd, 3> fds{{{process_.pidfd.get(), POLLIN, 0},
                             {supervisor_.get(), POLLIN, 0},
                             {signals_.get(), POLLIN, 0}}};
  while (true) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[2].revents != 0) {
      signalfd_siginfo told{};
      while (read(signals_.get(), &told, sizeof told) > 0) Terminate();
    }
    if (fds[1].revents != 0) {
      bool gone = false;
      const std::optional<RankOrder> order = ReadOrder(supervisor_, gone);
      if (order == RankOrder::kTerminate) Terminate();
      if (gone || order == RankOrder::kKill) kill(-process_.pid, SIGKILL);
      if (gone) fds[1].fd = -1;
    }
    if (fds[0].revents != 0) return Reap();
  }
}

RankEnd Runner::Run(const std::string& address) {
  Prepare();
  signals_ = WatchSignals();
  absl::StatusOr<FileDescriptor> connected = ConnectToRanks(address);
  if (!connected.ok()) return {.exit_code = kNotStarted};  // the supervisor is gone, and so are all
  supervisor_ = *std::move(connected);
  const int nodes = RankNumber(order_.environment, "NNODES", 1);
  RankMessage message{.rank = rank_, .ranks = RankNumber(order_.environment, "WORLD_SIZE", nodes)};
  SendMessage(supervisor_, message);
  if (Start()) {
    message.kind = RankMessage::Kind::kStarted;
    SendMessage(supervisor_, message, process_.pidfd);
    Await();
  }
  message.kind = RankMessage::Kind::kEnded;
  message.end = end_;
  SendMessage(supervisor_, message);
  pollfd go{supervisor_.get(), POLLIN, 0};
  for (bool gone = false; !gone;) {
    if (poll(&go, 1, -1) > 0 && ReadOrder(supervisor_, gone) == RankOrder::kGo) break;
  }
  return end_;
}

}  // namespace

std::vector<std::string> RunnerWords(const std::string& program, const std::string& address,
                                     const std::string& replica_log, bool adds_rank,
                                     const LaunchKind& kind) {
  return std::vector<std::string>{program, std::string(kRunRank), address, replica_log,
                                  std::string(adds_rank ? kind.rank_option : kNoOption)};
}

std::optional<int> RunRank(int argc, const char* const* argv) {
  if (argc <= kFirstWord || argv[1] != kRunRank) return std::nullopt;
  prctl(PR_SET_NAME, "espalier-rank");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // of its launcher
  const RankEnd end =
      Runner(argv[3], argv[4], std::vector<std::string>(argv + kFirstWord, argv + argc))
          .Run(argv[2]);
  if (end.signal != 0) EndBySignal(end.signal);
  return end.exit_code;
}

void EndBySignal(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  // No other one that waits: it would come first.
  sigset_t this_one;
  sigemptyset(&this_one);
  sigaddset(&this_one, signal);
  sigprocmask(SIG_UNBLOCK, &this_one, nullptr);
  kill(getpid(), signal);
  _exit(128 + signal);
}

}  // namespace espalier
