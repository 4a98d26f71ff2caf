#include "trial_runner/agent/replica_process.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/private_files.h"
#include "base/protocol.h"
#include "trial_runner/agent/last_output.h"
#include "trial_runner/agent/ranks/rank_files.h"

namespace espalier {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
// A replica that never stops talking must not keep the others from being heard.
constexpr int kChunksPerTurn = 16;

}  // namespace

v1::LiveReplica IdentityOf(const v1::StartReplica& start) {
  v1::LiveReplica identity;
  identity.set_replica_id(start.replica_id());
  identity.set_trial_id(start.trial_id());
  identity.set_slot(start.slot());
  *identity.mutable_more_slots() = start.more_slots();
  identity.set_started_from(start.has_from() ? start.from().fingerprint() : start.checkpoint());
  return identity;
}

absl::Status CheckReplicaProtocol(std::int64_t replica_id, const std::string& protocol) {
  ESPALIER_ASSIGN_OR_RETURN(
      const Speaker replica,
      SpeakerFrom(absl::StrCat("the program of replica ", replica_id), protocol));
  return AgreeOnProtocol(replica, ThisSpeaker("this agent")).status();
}

ReplicaProcess::ReplicaProcess(LaunchedProcess process, v1::StartReplica start,
                               std::string log_path, std::unique_ptr<FileWatch> files)
    : process_(std::move(process)),
      start_(std::move(start)),
      identity_(IdentityOf(start_)),
      ids_{start_.replica_id()},
      log_path_(std::move(log_path)),
      output_(OutputWatch::Of(start_, log_path_)),
      files_(std::move(files)) {
  identity_.set_pid(process_.pid);
}

ReplicaProcess::ReplicaProcess(const v1::HandedReplica& handed)
    : process_{handed.identity().pid(), FileDescriptor(handed.pidfd()),
               FileDescriptor(handed.control())},
      start_(handed.start()),
      identity_(handed.identity()),
      ids_(handed.ids().begin(), handed.ids().end()),
      log_path_(handed.log_path()),
      commands_(handed.commands().begin(), handed.commands().end()),
      sent_of_first_(handed.sent_of_first()),
      leased_(handed.leased()),
      silence_(std::chrono::nanoseconds(handed.silence_ns())),
      error_(handed.error()),
      protocol_(handed.protocol()),
      output_(OutputWatch::Of(handed)),
      files_(FileWatch::Of(handed)) {
  ids_.insert(start_.replica_id());
  reader_.Append(handed.unread());
  if (handed.has_kill_at_ns()) {
    kill_at_ = Clock::time_point(std::chrono::nanoseconds(handed.kill_at_ns()));
  }
}

v1::HandedReplica ReplicaProcess::HandOver() const {
  v1::HandedReplica handed;
  *handed.mutable_start() = start_;
  *handed.mutable_identity() = identity_;
  handed.mutable_ids()->Add(ids_.begin(), ids_.end());
  handed.set_pidfd(process_.pidfd.get());
  handed.set_control(process_.control.get());
  handed.set_log_path(log_path_);
  handed.set_unread(std::string(reader_.unread()));
  for (const std::string& command : commands_) handed.add_commands(command);
  handed.set_sent_of_first(sent_of_first_);
  if (kill_at_) handed.set_kill_at_ns(kill_at_->time_since_epoch().count());
  handed.set_leased(leased_);
  handed.set_silence_ns(silence_.count());
  handed.set_error(error_);
  handed.set_protocol(protocol_);
  if (output_ != nullptr) *handed.mutable_output() = output_->HandOver();
  if (files_ != nullptr) *handed.mutable_files() = files_->HandOver();
  return handed;
}

ReplicaProcess::~ReplicaProcess() {
  if (reaped_) return;
  KillGroup();
  while (waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::vector<v1::ReplicaMessage> ReplicaProcess::Read() { return ReadUpTo(kChunksPerTurn); }

std::vector<v1::ReplicaMessage> ReplicaProcess::ReadUpTo(int chunks) {
  std::vector<v1::ReplicaMessage> messages;
  std::array<char, kChunkBytes> chunk;
  for (int i = 0; i < chunks && process_.control.open(); ++i) {
    const ssize_t got = recv(process_.control.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      process_.control.Close();
      commands_.clear();
      break;
    }
    silence_ = Clock::duration::zero();
    reader_.Append({chunk.data(), static_cast<std::size_t>(got)});
    Parse(messages);
  }
  return messages;
}

void ReplicaProcess::Parse(std::vector<v1::ReplicaMessage>& messages) {
  while (true) {
    absl::StatusOr<std::optional<std::string>> frame = reader_.Next();
    if (!frame.ok()) return KillFor(std::string(frame.status().message()));
    if (!frame->has_value()) return;
    v1::ReplicaMessage message;
    if (!message.ParseFromString(**frame)) {
      return KillFor(absl::StrCat("message of ", (*frame)->size(),
                                  " bytes on the control socket is not a ReplicaMessage"));
    }
    if (message.has_heartbeat()) {
      leased_ = true;
      continue;
    }
    if (message.has_greeting()) {
      protocol_ = message.greeting().protocol();
      if (message.greeting().has_fork_obstacle()) {
        fork_obstacle_ = message.greeting().fork_obstacle();
      }
      if (const absl::Status spoken = CheckReplicaProtocol(identity_.replica_id(), protocol_);
          !spoken.ok()) {
        return KillFor(std::string(spoken.message()));
      }
      continue;
    }
    if (message.has_report() || message.has_finished()) {
      if (output_ != nullptr) output_->ProgramSpeaks();
      if (files_ != nullptr) files_->ProgramSpeaks();
    }
    if (message.has_ready()) *identity_.mutable_ready() = message.ready();
    if (message.has_ranks_wait()) *identity_.mutable_ranks_wait() = message.ranks_wait();
    if (message.has_regrouped()) identity_.set_generation(message.regrouped().generation());
    messages.push_back(std::move(message));
  }
}

void ReplicaProcess::Send(const v1::ReplicaCommand& command) {
  if (!process_.control.open()) return;
  commands_.push_back(Frame(command.SerializeAsString()));
  if (commands_.size() > kMaxWaitingCommands) {
    // One that is partly sent has to stay, or the replica would lose its place in the stream.
    commands_.erase(commands_.begin() + (sent_of_first_ > 0 ? 1 : 0));
  }
  Flush();
}

std::optional<ReplicaProcess::Clock::duration> ReplicaProcess::LeaseLeft(
    Clock::duration lease) const {
  const bool held = lease > Clock::duration::zero() && leased_ && process_.control.open();
  if (!held) return std::nullopt;
  return lease - silence_;
}

void ReplicaProcess::KillIfSilent(Clock::duration lease) {
  const std::optional<Clock::duration> left = LeaseLeft(lease);
  if (!left || *left > Clock::duration::zero()) return;
  KillFor(
      absl::StrFormat("hung: not a word for %.1f s", std::chrono::duration<double>(lease).count()));
}

void ReplicaProcess::Flush() {
  while (!commands_.empty()) {
    const std::string& frame = commands_.front();
    const ssize_t sent = send(process_.control.get(), frame.data() + sent_of_first_,
                              frame.size() - sent_of_first_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) {
      commands_.clear();  // it has closed its end; reading will find that out
      sent_of_first_ = 0;
      return;
    }
    sent_of_first_ += static_cast<std::size_t>(sent);
    if (sent_of_first_ < frame.size()) return;
    commands_.pop_front();
    sent_of_first_ = 0;
  }
}

void ReplicaProcess::Terminate(double grace_s, Clock::time_point now) {
  if (grace_s <= 0) {
    kill_at_ = now;
    return KillIfDue(now);
  }
  const auto grace = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(grace_s, 86400.0)));
  const bool first = !kill_at_;
  kill_at_ = first ? now + grace : std::min(*kill_at_, now + grace);
  if (first) kill(-process_.pid, SIGTERM);
}

void ReplicaProcess::KillIfDue(Clock::time_point now) {
  if (!kill_at_ || now < *kill_at_) return;
  KillGroup();
  // Once is enough: nothing survives SIGKILL, and the deadline would keep the loop awake.
  kill_at_ = Clock::time_point::max();
}

bool ReplicaProcess::EndsAtOnce() const {
  const bool elastic = identity_.has_ready() && !start_.has_launch();
  if (!elastic) return false;
  std::istringstream status(TextOfFile(absl::StrCat("/proc/", process_.pid, "/status")));
  constexpr std::uint64_t kTerminate = std::uint64_t{1} << (SIGTERM - 1);
  int known = 0;
  std::string name;
  std::uint64_t mask = 0;
  for (std::string line; std::getline(status, line);) {
    // Masks of the signals that it has blocked, ignores and has handlers for.
    if (!line.starts_with("SigBlk:") && !line.starts_with("SigIgn:") &&
        !line.starts_with("SigCgt:")) {
      continue;
    }
    std::istringstream fields(line);
    if (!(fields >> name >> std::hex >> mask) || (mask & kTerminate) != 0) return false;
    ++known;
  }
  return known == 3;
}

void ReplicaProcess::KillFor(std::string reason) {
  error_ = std::move(reason);
  process_.control.Close();
  commands_.clear();
  KillGroup();
}

void ReplicaProcess::KillGroup() {
  // The group's id cannot have passed to others: its leader is not reaped yet.
  kill(-process_.pid, SIGKILL);
}

void ReplicaProcess::Adopt(v1::StartReplica start) {
  start_ = std::move(start);
  identity_ = IdentityOf(start_);
  identity_.set_pid(process_.pid);
  ids_.insert(start_.replica_id());
  if (start_.joins() > 0) {  // another process is the trial's first one now
    output_.reset();
    files_.reset();
  }
  v1::ReplicaCommand command;
  command.mutable_adopt()->set_replica_id(start_.replica_id());
  command.mutable_adopt()->set_checkpoint(start_.checkpoint());
  Send(command);
}

// Of several ranks, what is told is the end of the one that failed first.
void ReplicaProcess::BlameRank(Ending& ending) const {
  const std::optional<Blame> blame = ReadBlame(log_path_);
  // What was told to end has nobody to blame, unless another of the trial's nodes was.
  if (!blame || (kill_at_ && start_.launch().ranks_of_nodes().empty())) return;
  if (ending.error.empty()) ending.error = blame->why;
  if (blame->rank < 0) return;
  ending.rank = absl::StrCat("rank ", blame->rank, " of ", blame->of);
  ending.last_output = LastOutput(RankLog(log_path_, blame->rank));
}

ReplicaProcess::Ending ReplicaProcess::Reap() {
  ESPALIER_CHECK(!reaped_, "a replica is reaped once");
  KillGroup();
  Ending ending;
  std::vector<v1::ReplicaMessage> said;
  const absl::Status heard = Guarded(
      [this] { return absl::StrCat("what replica ", identity_.replica_id(), " has said last"); },
      [&] { said = ReadUpTo(std::numeric_limits<int>::max()); });
  if (!heard.ok() && error_.empty()) error_ = std::string(heard.message());
  int status = 0;
  while (waitpid(process_.pid, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  ending.error = error_;
  // Before its own last words, which may end the trial.
  const bool well = ending.exit_code == 0 && error_.empty() && !kill_at_;
  if (output_ != nullptr) ending.messages = output_->End(well);
  if (files_ != nullptr) ending.messages = files_->End(well);
  std::move(said.begin(), said.end(), std::back_inserter(ending.messages));
  ending.last_output = LastOutput(log_path_);
  if (start_.has_launch() && !ending.well()) BlameRank(ending);
  return ending;
}

}  // namespace espalier
