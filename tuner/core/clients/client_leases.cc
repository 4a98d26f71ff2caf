// Clients that run trials by themselves and fall silent: their trials end, and may be queued again.

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/clients/client_trials.h"

namespace espalier {

namespace {

constexpr int kLooksPerClientLease = 4;

// The names by which Optuna's own callback for stale trials keeps its account.
constexpr char kFailedTrial[] = "failed_trial";
constexpr char kRetryHistory[] = "retry_history";

// "[3, 5]" to its numbers; what is no such list counts as none.
std::vector<std::int64_t> ParseHistory(const std::string& json) {
  std::vector<std::int64_t> numbers;
  const absl::string_view inside = absl::StripSuffix(absl::StripPrefix(json, "["), "]");
  for (const absl::string_view word : absl::StrSplit(inside, ',', absl::SkipWhitespace())) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

void ClientTrials::HeardOf(TrialId id) {
  if (options_.client_lease.seconds <= 0) return;
  const Trial& trial = turn_.TrialAt(id);
  if (trial.state == TrialState::kRunning && turn_.StudyAt(trial.study).spec.by_clients()) {
    heard_of_[id] = turn_.now();
    if (!leases_checked_) leases_checked_ = turn_.now();
  } else {
    heard_of_.erase(id);
  }
}

void ClientTrials::CheckLeases() {
  const ClientLease& lease = options_.client_lease;
  if (!leases_checked_ ||
      SecondsBetween(*leases_checked_, turn_.now()) < lease.seconds / kLooksPerClientLease) {
    return;
  }
  // The first step after a restart is the first that knows the time.
  for (auto& [id, heard] : heard_of_) {
    if (heard == Time{}) heard = turn_.now();
  }
  leases_checked_ = turn_.now();
  std::vector<TrialId> silent;
  for (const auto& [id, heard] : heard_of_) {
    if (SecondsBetween(heard, turn_.now()) >= lease.seconds) silent.push_back(id);
  }
  for (const TrialId id : silent) {
    heard_of_.erase(id);
    const Trial& trial = turn_.TrialAt(id);
    if (turn_.StudyAt(trial.study).state == StudyState::kRunning) QueueAgain(trial);
    turn_.Decide(trial, DecisionKind::kFail, 0, 0,
                 absl::StrCat("its client was silent for ", lease.seconds, " s"));
    turn_.Emit(TrialTold{
        .id = id, .state = TrialState::kFail, .values = {}, .started = {}, .ended = turn_.now()});
    EndIfAllTold(turn_.TrialAt(id).study);
  }
}

void ClientTrials::QueueAgain(const Trial& lost) {
  std::vector<std::int64_t> history;
  const std::map<std::string, std::string>& before = lost.attributes.system;
  if (const auto it = before.find(kRetryHistory); it != before.end()) {
    history = ParseHistory(it->second);
  }
  if (std::ssize(history) >= options_.client_lease.max_retries) return;
  history.push_back(lost.number);
  TrialTemplate again;
  for (const SuggestedValue& suggested : lost.suggested) {
    const std::vector<Suggestion>& known = turn_.StudyAt(lost.study).suggestions;
    again.parameters.emplace_back(known[static_cast<std::size_t>(suggested.suggestion)],
                                  suggested.value);
  }
  again.attributes = lost.attributes;
  // Whoever repeats a request is answered with the trial that it made.
  again.attributes.system.erase(kCreationKey);
  again.attributes.system.erase(kAskKey);
  // It has yet to be seen whether it keeps to them.
  std::erase_if(again.attributes.system,
                [](const auto& one) { return IsConstraintKey(one.first); });
  again.attributes.system.try_emplace(kFailedTrial, absl::StrCat(lost.number));
  again.attributes.system[kRetryHistory] = absl::StrCat("[", absl::StrJoin(history, ", "), "]");
  CreateFrom(lost.study, again);
}

std::optional<Time> ClientTrials::NextCheck() const {
  if (!leases_checked_ || heard_of_.empty()) return std::nullopt;
  return After(*leases_checked_, options_.client_lease.seconds / kLooksPerClientLease);
}

}  // namespace espalier
