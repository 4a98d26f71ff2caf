#include "trial_runner/agent/ranks/gang.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "trial_runner/agent/ranks/rank_runner.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kMostReleased{30};        // for launchers to end after their ranks
constexpr std::size_t kMostOfLauncher_bytes = 64 << 10;  // of what it prints, where it has failed

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

std::string HowEnded(const RankEnd& end) {
  return end.signal != 0 ? absl::StrCat("was killed by signal ", end.signal)
                         : absl::StrCat("exited with code ", end.exit_code);
}

}  // namespace

std::vector<Gang::Rank> Gang::OfAll(const RanksOrder& order) {
  return std::vector<Rank>(static_cast<std::size_t>(order.ranks));
}

RankEnd Gang::Run() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = FileDescriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (const absl::Status started = Start(); !started.ok()) {
    std::printf("%s\n", std::string(started.message()).c_str());
    return {.exit_code = 1};
  }
  while (!Over()) {
    Wait();
    KeepTime();
  }
  const RankEnd result = Result();
  Release();
  return result;
}

// ---- Starting -------------------------------------------------------------------------------

absl::Status Gang::Start() {
  const std::string address = NewRankAddress();
  ESPALIER_ASSIGN_OR_RETURN(listener_, ListenForRanks(address));
  ESPALIER_ASSIGN_OR_RETURN(HeldPort port, HeldPort::In(order_.ports));
  port_.emplace(std::move(port));
  std::map<std::string, std::string> environment = OwnEnvironment();
  // Where a machine's name is another address than loopback, or none, libraries would look for one
  // another there.
  environment.emplace("GLOO_SOCKET_IFNAME", "lo");
  environment.emplace("NCCL_SOCKET_IFNAME", "lo");
  // This very program, also where another one is in its place by now.
  const std::vector<std::string> runner =
      RunnerWords(absl::StrCat("/proc/", getpid(), "/exe"), address, order_.replica_log,
                  TakesRankOption(*order_.kind, order_.launch), *order_.kind);
  const absl::Status started = HasLauncher() ? StartLauncher(std::move(environment), runner)
                                             : StartRunners(environment, runner);
  zygote_.reset();
  return started;
}

absl::Status Gang::StartLauncher(std::map<std::string, std::string> environment,
                                 const std::vector<std::string>& runner) {
  const LaunchKind& kind = *order_.kind;
  const RankPlace place{.ranks = order_.ranks,
                        .port = port_->number(),
                        .config_file = LauncherConfigFile(order_.replica_log)};
  if (kind.config != nullptr) {
    ESPALIER_RETURN_IF_ERROR(WritePrivateFile(place.config_file, kind.config(place.ranks)));
  }
  const auto gpus = environment.find("CUDA_VISIBLE_DEVICES");
  if (kind.renames_gpus && gpus != environment.end()) environment[kRankGpusVariable] = gpus->second;
  std::vector<std::string> words = runner;
  words.insert(words.end(), order_.command.begin(), order_.command.end());
  LaunchOrder launcher;
  launcher.command =
      LauncherCommand(kind, InterpreterOf(order_.command), order_.launch, place, words);
  launcher.environment = std::move(environment);
  launcher.log_path = LauncherLog(order_.replica_log);
  return StartProcess(std::move(launcher));
}

absl::Status Gang::StartRunners(const std::map<std::string, std::string>& environment,
                                const std::vector<std::string>& runner) {
  for (int rank = 0; rank < order_.ranks; ++rank) {
    LaunchOrder one;
    one.command = runner;
    one.command.insert(one.command.end(), order_.command.begin(), order_.command.end());
    one.environment = environment;
    one.environment["RANK"] = one.environment["LOCAL_RANK"] = absl::StrCat(rank);
    one.environment["WORLD_SIZE"] = one.environment["LOCAL_WORLD_SIZE"] =
        absl::StrCat(order_.ranks);
    one.environment["MASTER_ADDR"] = "127.0.0.1";
    one.environment["MASTER_PORT"] = absl::StrCat(port_->number());
    one.log_path = LauncherLog(order_.replica_log);
    ESPALIER_RETURN_IF_ERROR(StartProcess(std::move(one)));
  }
  return absl::OkStatus();
}

absl::Status Gang::StartProcess(LaunchOrder order) {
  order.directory = std::filesystem::current_path().string();
  // A launcher is a program in Python; a rank's runner is none, and has a zygote for the rank.
  ForkableCommand runner;
  runner.runs = kRanksOfZygote;
  const auto command = HasLauncher() ? ReadForkableCommand(order, {}) : runner;
  if (!command || command->native()) zygote_.reset();
  ESPALIER_ASSIGN_OR_RETURN(LaunchedProcess started,
                            ForkOrLaunch(zygote_, order, command.value_or(runner)));
  started.control.Close();
  processes_.push_back({.started = std::move(started), .end = std::nullopt});
  return absl::OkStatus();
}

// ---- Watching -------------------------------------------------------------------------------

// Whether all have ended, or those that have not come need not come any more.
bool Gang::Over() const {
  if (tell_at_ || std::ranges::any_of(ranks_, &Rank::runs)) return false;
  return told_ns_ != 0 || LauncherEnded() || std::ranges::all_of(ranks_, &Rank::ended);
}

int Gang::WaitMs() const {
  auto until = Clock::time_point::max();
  if (tell_at_) until = std::min(until, *tell_at_);
  if (kill_at_) until = std::min(until, *kill_at_);
  for (const Rank& rank : ranks_) {
    if (rank.ended && told_ns_ == 0) {
      until = std::min(until, rank.ended_at + Seconds(order_.apart_s));
    }
  }
  if (until == Clock::time_point::max()) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3'600'000));
}

void Gang::Wait() {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const Process& process : processes_) {
    fds.push_back({process.end ? -1 : process.started.pidfd.get(), POLLIN, 0});
  }
  const std::size_t first_rank = fds.size();
  for (const Rank& rank : ranks_) fds.push_back({rank.runner.get(), POLLIN, 0});
  for (const FileDescriptor& stranger : strangers_) fds.push_back({stranger.get(), POLLIN, 0});
  if (poll(fds.data(), fds.size(), WaitMs()) <= 0) return;
  TakeSignals();
  // What a rank has said before its runner, or the launcher above it, was gone.
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (fds[first_rank + i].revents != 0) Hear(static_cast<int>(i));
  }
  Welcome();
  ReapProcesses();
}

void Gang::TakeSignals() {
  signalfd_siginfo told{};
  bool any = false;
  while (read(signals_.get(), &told, sizeof told) > 0) any = true;
  if (!any || terminated_) return;
  terminated_ = true;
  TellToEnd(std::nullopt);
}

void Gang::Welcome() {
  for (FileDescriptor come = AcceptRank(listener_); come.open(); come = AcceptRank(listener_)) {
    strangers_.push_back(std::move(come));
  }
  for (FileDescriptor& stranger : strangers_) {
    bool gone = false;
    const std::optional<RankMessage> message = ReadMessage(stranger, gone);
    if (message) {
      const bool known = message->kind == RankMessage::Kind::kCame && message->rank >= 0 &&
                         message->rank < order_.ranks &&
                         !ranks_[static_cast<std::size_t>(message->rank)].came;
      if (known) {
        Rank& rank = ranks_[static_cast<std::size_t>(message->rank)];
        rank.came = true;
        rank.runner = std::move(stranger);
        if (told_ns_ != 0) SendOrder(rank.runner, RankOrder::kTerminate);
      }
      if (!known || message->ranks != order_.ranks) {
        Fail(absl::StrCat(order_.launch.front(), " started ", message->ranks,
                          message->ranks == 1 ? " rank" : " ranks", ", and the trial has ",
                          order_.ranks, order_.ranks == 1 ? " slot" : " slots",
                          " on this machine: leave options that say how many out of \"launch\""));
      }
      gone = true;
    }
    if (gone) stranger.Close();
  }
  std::erase_if(strangers_, [](const FileDescriptor& stranger) { return !stranger.open(); });
}

void Gang::Hear(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  bool gone = false;
  const std::optional<RankMessage> message = ReadMessage(rank.runner, gone);
  if (message && message->kind == RankMessage::Kind::kEnded) RankEnded(number, message->end);
  if (!gone) return;
  rank.runner.Close();
  if (rank.ended) return;
  rank.lost = true;
  RankEnded(number, {.exit_code = -1, .signal = SIGKILL, .at_ns = RankClock_ns()});
}

void Gang::RankEnded(int number, const RankEnd& end) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (rank.ended) return;
  rank.came = rank.ended = true;
  rank.end = end;
  rank.ended_at = Clock::now();
  if (end.well() || told_ns_ != 0 || tell_at_) return;
  tell_at_ = Clock::now() + std::chrono::nanoseconds(kEndSeenWithin_ns);
}

void Gang::ReapProcesses() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    pollfd ended{processes_[i].started.pidfd.get(), POLLIN, 0};
    if (!processes_[i].end && poll(&ended, 1, 0) > 0) ProcessEnded(i);
  }
}

void Gang::ProcessEnded(std::size_t number) {
  Process& process = processes_[number];
  process.end = ReapRank(process.started.pid);
  if (!HasLauncher()) {
    // A runner that has not even come. One that has is heard of by its socket.
    if (!ranks_[number].came) RankEnded(static_cast<int>(number), *process.end);
    return;
  }
  const bool done =
      std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.ended && !rank.lost; });
  if (done || told_ns_ != 0 || std::ranges::none_of(ranks_, &Rank::came)) return;
  // Its ranks go with it, and are not to blame.
  PrintLauncher();
  Fail(absl::StrCat(order_.launch.front(), ", which had started the ranks, ",
                    HowEnded(*process.end)));
}

void Gang::KeepTime() {
  const Clock::time_point now = Clock::now();
  if (kill_at_ && now >= *kill_at_) KillAll();
  if (told_ns_ != 0) return;
  if (tell_at_ && now >= *tell_at_) TellToEnd(order_.grace_s);
  const bool some_run = !std::ranges::all_of(ranks_, &Rank::ended);
  for (std::size_t i = 0; i < ranks_.size() && some_run && late_ < 0; ++i) {
    const bool early = ranks_[i].ended && ranks_[i].end.well() &&
                       now - ranks_[i].ended_at >= Seconds(order_.apart_s);
    if (early) late_ = static_cast<int>(i);
  }
  if (late_ >= 0 && told_ns_ == 0) TellToEnd(order_.grace_s);
}

// ---- Ending ---------------------------------------------------------------------------------

void Gang::TellToEnd(std::optional<double> grace_s) {
  if (told_ns_ == 0) told_ns_ = RankClock_ns();
  tell_at_.reset();
  for (const Rank& rank : ranks_) {
    if (rank.runs()) SendOrder(rank.runner, RankOrder::kTerminate);
  }
  if (grace_s) kill_at_ = Clock::now() + Seconds(*grace_s);
}

void Gang::KillAll() {
  kill_at_.reset();
  for (const Rank& rank : ranks_) {
    if (rank.runs()) SendOrder(rank.runner, RankOrder::kKill);
  }
}

void Gang::Fail(std::string why) {
  if (!failure_.empty()) return;
  failure_ = std::move(why);
  TellToEnd(0);
}

// Ranks' runners end now, and the launcher sees them all end at once. One that has not started all
// is not waited for, nor is any where whoever runs this has ended it: launchers take a second to
// end, and somebody waits for the slots.
void Gang::Release() {
  const bool awaited = !terminated_ && std::ranges::all_of(ranks_, &Rank::came);
  for (const Process& process : processes_) {
    if (!awaited && !process.end) kill(-process.started.pid, SIGKILL);
  }
  for (const Rank& rank : ranks_) {
    if (rank.runner.open()) SendOrder(rank.runner, RankOrder::kGo);
  }
  listener_.Close();
  strangers_.clear();
  const auto until = Clock::now() + kMostReleased;
  for (Process& process : processes_) {
    if (process.end) continue;
    pollfd ended{process.started.pidfd.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(0, left))) <= 0) {
      kill(-process.started.pid, SIGKILL);
    }
    process.end = ReapRank(process.started.pid);
  }
}

// What the launcher has said last, into the trial's own output.
void Gang::PrintLauncher() const {
  const std::string printed = TextOfFile(LauncherLog(order_.replica_log));
  const std::size_t from = printed.size() - std::min(printed.size(), kMostOfLauncher_bytes);
  std::fwrite(printed.data() + from, 1, printed.size() - from, stdout);
}

RankEnd Gang::EndOfLauncher() const {
  PrintLauncher();
  const LaunchKind& kind = *order_.kind;
  const RankEnd& end = *processes_.front().end;
  const std::string interpreter = InterpreterOf(order_.command);
  std::printf(
      "%s (%s -m %s) %s before it had started the ranks: where it is missing, %s -m pip "
      "install %s\n",
      order_.launch.front().c_str(), interpreter.c_str(), std::string(kind.module).c_str(),
      HowEnded(end).c_str(), interpreter.c_str(), std::string(kind.package).c_str());
  return end.well() ? RankEnd{.exit_code = 1} : end;
}

RankEnd Gang::Result() {
  std::vector<RankEnd> ends;
  for (const Rank& rank : ranks_) ends.push_back(rank.end);
  const bool none_came = std::ranges::none_of(ranks_, &Rank::came);
  Blame blame{.rank = -1, .of = order_.ranks, .why = failure_};
  RankEnd end{.exit_code = 0};
  if (none_came && LauncherEnded() && told_ns_ == 0) return EndOfLauncher();
  if (terminated_) {
    // Not a failure of one of them.
    for (const RankEnd& each : ends) {
      if (!each.well() && end.well()) end = each;
    }
    return end;
  }
  if (!failure_.empty()) {
    end = {.exit_code = -1, .signal = SIGKILL};
  } else if (blame.rank = RankToBlame(ends, told_ns_ == 0 ? RankClock_ns() : told_ns_);
             blame.rank >= 0) {
    end = ends[static_cast<std::size_t>(blame.rank)];
    if (const int left = RankThatHadLeft(ends, blame.rank); left >= 0) {
      blame.why = absl::StrCat(HowEnded(end), " after rank ", left, " had ended with 0");
    }
  } else if (late_ >= 0) {
    blame.rank = late_;
    blame.why =
        absl::StrCat("ended with 0, and others ran on for ", order_.apart_s, " s (exit_timeout_s)");
    end = {.exit_code = -1, .signal = SIGKILL};
  }
  if (end.well()) return end;
  if (const absl::Status written = WriteBlame(order_.replica_log, blame); !written.ok()) {
    std::printf("%s\n", std::string(written.message()).c_str());
  }
  return end;
}

}  // namespace espalier
