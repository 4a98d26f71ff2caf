#include "trial_runner/agent/ranks/gang.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/private_files.h"
#include "base/protocol.h"
#include "trial_runner/agent/ranks/left_memory.h"
#include "trial_runner/agent/ranks/rank_runner.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kMostReleased{30};  // for launchers to end after their ranks
// So late the runner of a rank that has ended may say how, on a machine that is busy.
constexpr std::chrono::seconds kMostLate{5};
constexpr std::size_t kMostOfLauncher_bytes = 64 << 10;  // of what it prints, where it has failed

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

Gang::Gang(RanksOrder order, int control)
    : order_(std::move(order)),
      place_{.ranks_of_nodes = order_.ranks_of_nodes,
             .node_rank = order_.node_rank,
             .config_file = LauncherConfigFile(order_.replica_log),
             .log_folder = LauncherFolder(order_.replica_log)},
      ranks_(static_cast<std::size_t>(place_.here())) {
  if (order_.over_nodes()) other_nodes_.emplace(control);
}

RankEnd Gang::Run() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = FileDescriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  absl::Status started = Prepare();
  if (started.ok() && other_nodes_ && !AwaitOtherNodes()) {
    return {.exit_code = -1, .signal = SIGTERM};
  }
  if (started.ok()) started = Start();
  if (!started.ok()) {
    std::printf("%s\n", std::string(started.message()).c_str());
    return {.exit_code = 1};
  }
  while (!Over()) {
    Wait();
    KeepTime();
  }
  const RankEnd result = Result();
  TellOfThoseThatLeft();
  Release();
  RemoveLeftMemory("/dev/shm", getuid(), place_.address, place_.port);
  return result;
}

// ---- Starting -------------------------------------------------------------------------------

absl::Status Gang::Prepare() {
  address_ = NewRankAddress();
  ESPALIER_ASSIGN_OR_RETURN(listener_, ListenForRanks(address_));
  if (place_.node_rank > 0) return absl::OkStatus();
  ESPALIER_ASSIGN_OR_RETURN(HeldPort port, HeldPort::In(order_.ports));
  port_.emplace(std::move(port));
  place_.port = port_->number();
  return absl::OkStatus();
}

bool Gang::AwaitOtherNodes() {
  const auto environment = OwnEnvironment();
  const auto host = environment.find(kHostAddressVariable);
  if (host != environment.end()) place_.address = host->second;
  other_nodes_->TellWaiting(port_ ? HostPort{place_.address, place_.port}.text() : "");
  while (!other_nodes_->gone()) {
    std::array<pollfd, 2> fds{{{signals_.get(), POLLIN, 0}, {other_nodes_->fd(), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) break;
    const std::optional<std::string> told = other_nodes_->TakeMeeting();
    const auto meeting = told ? ParseHostPort(*told) : absl::NotFoundError("not told");
    if (!meeting.ok()) continue;
    place_.address = meeting->host;
    place_.port = meeting->port;
    return true;
  }
  return false;
}

// Where a machine's name is another address than that at which others reach it, or none, libraries
// would look for one another there.
std::map<std::string, std::string> Gang::Environment() const {
  std::map<std::string, std::string> environment = OwnEnvironment();
  const auto found = environment.find(kInterfaceVariable);
  const std::string interface = other_nodes_ && found != environment.end() ? found->second : "lo";
  environment.emplace("GLOO_SOCKET_IFNAME", interface);
  environment.emplace("NCCL_SOCKET_IFNAME", interface);
  return environment;
}

absl::Status Gang::Start() {
  // This very program, also where another one is in its place by now.
  const std::vector<std::string> runner =
      RunnerWords(absl::StrCat("/proc/", getpid(), "/exe"), address_, order_.replica_log,
                  TakesRankOption(*order_.kind, order_.launch), *order_.kind);
  const absl::Status started =
      HasLauncher() ? StartLauncher(Environment(), runner) : StartRunners(Environment(), runner);
  zygote_.reset();
  return started;
}

absl::Status Gang::StartLauncher(std::map<std::string, std::string> environment,
                                 const std::vector<std::string>& runner) {
  const LaunchKind& kind = *order_.kind;
  if (kind.config != nullptr) {
    ESPALIER_RETURN_IF_ERROR(WritePrivateFile(place_.config_file, kind.config(place_.all())));
  }
  const auto gpus = environment.find("CUDA_VISIBLE_DEVICES");
  if (kind.renames_gpus && gpus != environment.end()) environment[kRankGpusVariable] = gpus->second;
  std::vector<std::string> words = runner;
  words.insert(words.end(), order_.command.begin(), order_.command.end());
  LaunchOrder launcher;
  launcher.command =
      LauncherCommand(kind, InterpreterOf(order_.command), order_.launch, place_, words);
  launcher.environment = std::move(environment);
  launcher.log_path = LauncherLog(order_.replica_log);
  return StartProcess(std::move(launcher));
}

void Gang::NameRank(int rank, std::map<std::string, std::string>& environment) const {
  const std::pair<const char*, int> of_rank[] = {{"RANK", place_.first() + rank},
                                                 {"LOCAL_RANK", rank},
                                                 {"WORLD_SIZE", place_.all()},
                                                 {"LOCAL_WORLD_SIZE", place_.here()},
                                                 {"GROUP_RANK", place_.node_rank}};
  for (const auto& [name, number] : of_rank) {
    // A program that starts ranks of its own would take these for theirs.
    if (order_.kind->one_a_node) {
      environment.erase(name);
    } else {
      environment[name] = absl::StrCat(number);
    }
  }
  environment["NODE_RANK"] = absl::StrCat(place_.node_rank);
  environment["NNODES"] = absl::StrCat(place_.nodes());
  environment["MASTER_ADDR"] = place_.address;
  environment["MASTER_PORT"] = absl::StrCat(place_.port);
}

absl::Status Gang::StartRunners(const std::map<std::string, std::string>& environment,
                                const std::vector<std::string>& runner) {
  for (int rank = 0; rank < place_.here(); ++rank) {
    LaunchOrder one;
    one.command = runner;
    one.command.insert(one.command.end(), order_.command.begin(), order_.command.end());
    one.environment = environment;
    NameRank(rank, one.environment);
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
  if (tell_at_) until = std::min(until, TimeToTell());
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
  const int other_nodes = other_nodes_ && !other_nodes_->gone() ? other_nodes_->fd() : -1;
  std::vector<pollfd> fds{
      {signals_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {other_nodes, POLLIN, 0}};
  fds.push_back({order_of_ends_.fd(), POLLIN, 0});
  for (const Process& process : processes_) {
    fds.push_back({process.end ? -1 : process.started.pidfd.get(), POLLIN, 0});
  }
  const std::size_t first_rank = fds.size();
  for (const Rank& rank : ranks_) fds.push_back({rank.runner.get(), POLLIN, 0});
  for (const FileDescriptor& stranger : strangers_) fds.push_back({stranger.get(), POLLIN, 0});
  if (poll(fds.data(), fds.size(), WaitMs()) <= 0) return;
  TakeSignals();
  if (other_nodes >= 0) other_nodes_->TakeMeeting();  // which is known
  TakeEnds();
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

void Gang::TakeEnds() {
  for (const int number : order_of_ends_.Take()) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    rank.nth = ++ended_;
    rank.seen_ns = RankClock_ns();
  }
}

void Gang::Welcome() {
  for (FileDescriptor come = AcceptRank(listener_); come.open(); come = AcceptRank(listener_)) {
    strangers_.push_back(std::move(come));
  }
  for (FileDescriptor& stranger : strangers_) {
    bool gone = false;
    const std::optional<HeardMessage> heard = ReadMessage(stranger, gone);
    if (heard) {
      const RankMessage* const message = &heard->said;
      const int number = message->rank - place_.first();
      const bool known = message->kind == RankMessage::Kind::kCame && number >= 0 &&
                         number < place_.here() && !ranks_[static_cast<std::size_t>(number)].came;
      if (known) {
        Rank& rank = ranks_[static_cast<std::size_t>(number)];
        rank.came = true;
        rank.runner = std::exchange(stranger, {});
        if (told_ns_ != 0) SendOrder(rank.runner, RankOrder::kTerminate);
      }
      const int all = place_.all();
      if (!known || message->ranks != all) {
        Fail(absl::StrCat(order_.launch.front(), " started ", message->ranks,
                          message->ranks == 1 ? " rank" : " ranks", ", and the trial has ", all,
                          all == 1 ? " slot" : " slots", other_nodes_ ? "" : " on this machine",
                          ": leave options that say how many out of \"launch\""));
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
  std::optional<HeardMessage> heard = ReadMessage(rank.runner, gone);
  if (heard && heard->process.open()) order_of_ends_.Watch(number, std::move(heard->process));
  if (heard && heard->said.kind == RankMessage::Kind::kEnded) RankEnded(number, heard->said.end);
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
  rank.end.nth = rank.nth;
  if (rank.nth > 0 && !end.noted) rank.end.at_ns = std::min(end.at_ns, rank.seen_ns);
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

// Whether the process of a rank has ended whose runner has not said how.
bool Gang::AwaitsHow() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.nth > 0 && !rank.ended; });
}

// It may be the one that has failed first.
Gang::Clock::time_point Gang::TimeToTell() const {
  return AwaitsHow() ? *tell_at_ + kMostLate : *tell_at_;
}

void Gang::KeepTime() {
  const Clock::time_point now = Clock::now();
  if (kill_at_ && now >= *kill_at_) KillAll();
  if (told_ns_ != 0) return;
  if (tell_at_ && now >= TimeToTell()) TellToEnd(order_.grace_s);
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
  if (told_ns_ == 0) {
    told_ns_ = RankClock_ns();
    NoteFailure();
    TellOfThoseThatLeft();
  }
  tell_at_.reset();
  for (const Rank& rank : ranks_) {
    if (rank.runs()) SendOrder(rank.runner, RankOrder::kTerminate);
  }
  if (grace_s) kill_at_ = Clock::now() + Seconds(*grace_s);
}

// What is told of the ranks here, where one of them, or all of them, have failed.
std::optional<Gang::Failure> Gang::FailureHere() const {
  // Of a trial that was told to end on its only node nothing is told.
  if (terminated_ && !other_nodes_) return std::nullopt;
  Failure failure{.blame = {.rank = -1, .of = place_.all(), .why = failure_},
                  .end = {.exit_code = -1, .signal = SIGKILL, .at_ns = told_ns_}};
  if (!failure_.empty()) return failure;
  std::vector<RankEnd> ends;
  for (const Rank& rank : ranks_) ends.push_back(rank.end);
  PutInOrder(ends);
  const int blamed = RankToBlame(ends, told_ns_ == 0 ? RankClock_ns() : told_ns_);
  if (blamed >= 0) {
    failure.blame.rank = place_.first() + blamed;
    failure.end = ends[static_cast<std::size_t>(blamed)];
    if (const int left = RankThatHadLeft(ends, blamed); left >= 0) {
      failure.blame.why = HowEndedAfter(failure.end, place_.first() + left);
    }
    return failure;
  }
  if (late_ < 0) return std::nullopt;
  failure.blame.rank = place_.first() + late_;
  failure.blame.why =
      absl::StrCat("ended with 0, and others ran on for ", order_.apart_s, " s (exit_timeout_s)");
  return failure;
}

// At once: this process may be killed before the others have ended.
void Gang::NoteFailure() {
  const std::optional<Failure> failure = FailureHere();
  if (!failure) return;
  if (const absl::Status noted = WriteBlame(order_.replica_log, failure->blame); !noted.ok()) {
    std::printf("%s\n", std::string(noted.message()).c_str());
  }
  if (other_nodes_) other_nodes_->TellFailed(failure->end);
}

// A rank of another node may fail, or have failed, because its connections to them are gone. Told
// when the others here are told to end, and once more in the end, when the runner of each has said
// how it ended.
void Gang::TellOfThoseThatLeft() {
  if (!other_nodes_ || told_who_left_) return;
  std::vector<RankEnd> ends;
  for (const Rank& rank : ranks_) ends.push_back(rank.end);
  PutInOrder(ends);
  // As seen by whoever fails when the others here were told to end.
  ends.push_back({.at_ns = told_ns_ == 0 ? std::numeric_limits<std::int64_t>::max() : told_ns_});
  const int left = RankThatHadLeft(ends, static_cast<int>(ranks_.size()));
  if (left < 0) return;
  other_nodes_->TellLeft(place_.first() + left, ends[static_cast<std::size_t>(left)]);
  told_who_left_ = true;
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
  const bool none_came = std::ranges::none_of(ranks_, &Rank::came);
  if (none_came && LauncherEnded() && told_ns_ == 0) return EndOfLauncher();
  if (const std::optional<Failure> failure = FailureHere()) return failure->end;
  // All have ended well, or as they were told to.
  for (const Rank& each : ranks_) {
    if (!each.end.well()) return each.end;
  }
  return {.exit_code = 0};
}

}  // namespace espalier
