#include "tuner/server/engines/machine_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace espalier {

MachineBook::MachineBook(std::string prefix, MachineTimes times,
                         std::function<std::string()> new_incarnation)
    : prefix_(std::move(prefix)),
      times_(times),
      new_incarnation_(std::move(new_incarnation)),
      retry_s_(times.retry_s) {}

void MachineBook::Want(const std::string& node) {
  wanted_.try_emplace(node, WantedMachine{.settle_s = times_.settle_s});
  released_early_.erase(node);
}

void MachineBook::Release(const std::string& node) {
  wanted_.erase(node);
  joined_.erase(node);
  reasons_.erase(node);
  silent_.erase(node);
  waits_.erase(node);
  if (!looked_) released_early_.insert(node);
}

void MachineBook::ReleaseAll() {
  wanted_.clear();
  joined_.clear();
  reasons_.clear();
  silent_.clear();
  waits_.clear();
  looked_ = true;  // nothing is taken over any more
}

void MachineBook::Joined(const std::string& node) {
  joined_.insert(node);
  silent_.erase(node);
}

// Of a key of this pool; none: it is another's, or of an address that nobody serves any more.
std::optional<std::string> MachineBook::NodeOf(const std::string& key) const {
  if (!key.starts_with(prefix_ + ".")) return std::nullopt;
  const std::size_t end = key.rfind('.');
  if (end <= prefix_.size()) return std::nullopt;
  return key.substr(prefix_.size() + 1, end - prefix_.size() - 1);
}

MachineBook::Steps MachineBook::Look(Time now, const std::vector<Machine>& there) {
  Steps steps;
  if (!looked_) TakeOver(there, steps);
  looked_ = true;
  released_early_.clear();
  ReleaseUnwanted(now, there, steps);
  NoteWanted(now, steps);
  RequestMissing(now, steps);
  steps.complete = std::all_of(wanted_.begin(), wanted_.end(),
                               [](const auto& wanted) { return wanted.second.seen; });
  steps.settled =
      leaving_.empty() && std::all_of(wanted_.begin(), wanted_.end(), [&](auto& wanted) {
        const auto kept = kept_.find(wanted.second.key);
        return kept != kept_.end() && kept->second.state == MachineState::kRunning;
      });
  return steps;
}

// Machines that run first: their agents may have trials.
void MachineBook::TakeOver(const std::vector<Machine>& there, Steps& steps) {
  for (const MachineState state : {MachineState::kRunning, MachineState::kPending}) {
    for (const Machine& machine : there) {
      const std::optional<std::string> node = NodeOf(machine.key);
      if (machine.state != state || !node || released_early_.contains(*node)) continue;
      WantedMachine& wanted = wanted_[*node];
      if (!wanted.key.empty()) continue;
      wanted.key = machine.key;
      wanted.seen = true;
      steps.taken_over.emplace_back(*node, machine);
    }
  }
}

void MachineBook::ReleaseUnwanted(Time now, const std::vector<Machine>& there, Steps& steps) {
  kept_.clear();
  ended_.clear();
  leaving_.clear();
  std::set<std::string> wanted_keys;
  for (const auto& [node, wanted] : wanted_) wanted_keys.insert(wanted.key);
  for (const Machine& machine : there) {
    if (machine.state == MachineState::kEnded) ended_.insert_or_assign(machine.key, machine);
    if (machine.state == MachineState::kEnded || !wanted_keys.contains(machine.key)) continue;
    const auto [kept, first] = kept_.try_emplace(machine.key, machine);
    // Of several, one that runs, else the first that is listed.
    if (!first && kept->second.state != MachineState::kRunning &&
        machine.state == MachineState::kRunning) {
      kept->second = machine;
    }
  }
  std::map<std::string, Time> told;
  for (const Machine& machine : there) {
    if (machine.state == MachineState::kEnded) continue;
    const auto kept = kept_.find(machine.key);
    if (kept != kept_.end() && kept->second.id == machine.id) continue;
    ++leaving_[NodeOf(machine.key).value_or("")];
    if (machine.state == MachineState::kEnding) continue;
    const auto before = told_.find(machine.id);
    if (before == told_.end()) {
      told[machine.id] = now;
      steps.releases.emplace_back(machine, Leave::kInTime);
    } else if (SecondsBetween(before->second, now) >= times_.end_grace_s) {
      told[machine.id] = now;
      steps.releases.emplace_back(machine, Leave::kNow);
    } else {
      told.insert(*before);
    }
  }
  told_ = std::move(told);
}

void MachineBook::NoteReason(Time now, const std::string& node, const Machine& machine,
                             WantedMachine& wanted) {
  if (machine.reason.empty()) {
    wanted.waits_since.reset();
    return;
  }
  if (!wanted.waits_since) wanted.waits_since = now;
  if (SecondsBetween(*wanted.waits_since, now) >= times_.wait_s) reasons_[node] = machine.reason;
}

void MachineBook::NoteSilent(Time now, const std::string& node, const Machine& machine,
                             WantedMachine& wanted) {
  if (machine.state != MachineState::kRunning || joined_.contains(node)) return;
  if (!wanted.runs_since) wanted.runs_since = now;
  if (SecondsBetween(*wanted.runs_since, now) >= times_.join_s) silent_[node] = machine;
}

void MachineBook::NoteWanted(Time now, Steps& steps) {
  reasons_.clear();
  silent_.clear();
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    auto& [node, wanted] = *it;
    const auto kept = kept_.find(wanted.key);
    if (kept != kept_.end()) {
      wanted.seen = true;
      NoteReason(now, node, kept->second, wanted);
      NoteSilent(now, node, kept->second, wanted);
      ++it;
      continue;
    }
    const auto ended = ended_.find(wanted.key);
    if (!wanted.key.empty() && (wanted.seen || ended != ended_.end())) {
      // It is not started again: whoever wants it will say so.
      Machine machine{.key = wanted.key, .state = MachineState::kEnded};
      if (ended != ended_.end()) machine = ended->second;
      steps.ended.emplace_back(node, machine);
      joined_.erase(node);
      it = wanted_.erase(it);
      continue;
    }
    // An agent that has joined runs somewhere, whatever the list leaves out.
    if (wanted.requested && !joined_.contains(node) &&
        SecondsBetween(*wanted.requested, now) >= wanted.settle_s) {
      wanted.requested.reset();
      wanted.settle_s = std::min(2 * wanted.settle_s, times_.most_retry_s);
      steps.lost.push_back(wanted.key);
    }
    ++it;
  }
}

// Whether the machines that a node had before are gone, or have kept it waiting for long enough.
// Agents of one name would be in each other's way.
bool MachineBook::PredecessorLeft(const std::string& node, Time now) {
  if (!leaving_.contains(node)) {
    waits_.erase(node);
    return true;
  }
  const Time since = waits_.try_emplace(node, now).first->second;
  return SecondsBetween(since, now) >= times_.successor_wait_s;
}

void MachineBook::RequestMissing(Time now, Steps& steps) {
  if (next_request_ && *next_request_ > now) return;
  for (auto& [node, wanted] : wanted_) {
    if (wanted.seen || wanted.requested || !PredecessorLeft(node, now)) continue;
    if (wanted.key.empty()) wanted.key = absl::StrCat(prefix_, ".", node, ".", new_incarnation_());
    steps.requests.push_back({wanted.key, node});
  }
}

void MachineBook::Requested(const std::string& key, Time now, const absl::Status& status) {
  const bool perhaps = status.ok() || status.code() == absl::StatusCode::kDeadlineExceeded;
  for (auto& [node, wanted] : wanted_) {
    if (wanted.key == key && perhaps) wanted.requested = now;
  }
  if (status.ok()) {
    next_request_.reset();
    retry_s_ = times_.retry_s;
    return;
  }
  next_request_ = After(now, retry_s_);
  retry_s_ = std::min(2 * retry_s_, times_.most_retry_s);
}

}  // namespace espalier
