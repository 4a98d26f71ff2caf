#include "tuner/web/feed/revision_log.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace espalier {

namespace {

// What no page shows, and what would keep pages busy: each rank of a program tells values.
template <typename Change>
constexpr bool kUnseen =
    std::is_same_v<Change, RankValueTold> || std::is_same_v<Change, RankValuesForgotten> ||
    std::is_same_v<Change, VerdictAgreed> || std::is_same_v<Change, GenerationAdvanced> ||
    std::is_same_v<Change, CheckpointCopySet> || std::is_same_v<Change, CheckpointCopyGone> ||
    std::is_same_v<Change, TrialEnvironmentSet> || std::is_same_v<Change, TokenKept> ||
    std::is_same_v<Change, ReplicaIdsReserved>;

// Whose the change is: what its id is of says so.
struct Touched {
  StudyId study;
  TrialId trial;
  bool pool = false;
  bool decisions = false;
};
template <typename Change>
Touched TouchedBy(const Change& change) {
  if constexpr (kUnseen<Change>) {
    return {};
  } else if constexpr (std::is_same_v<Change, DecisionMade>) {
    return {.study = change.study, .trial = {}, .decisions = true};
  } else if constexpr (std::is_same_v<Change, PoolPolicySet>) {
    return {.study = {}, .trial = {}, .pool = true};
  } else if constexpr (std::is_same_v<decltype(change.id), TrialId>) {
    return {.study = {}, .trial = change.id, .pool = std::is_same_v<Change, SlotsHeldChanged>};
  } else if constexpr (std::is_same_v<decltype(change.id), StudyId>) {
    return {.study = change.id, .trial = {}};
  } else {
    static_assert(std::is_same_v<decltype(change.id), NodeId>, "a change of what?");
    return {.study = {}, .trial = {}, .pool = true};
  }
}

}  // namespace

RevisionLog::RevisionLog(std::string incarnation, std::size_t most_entries)
    : incarnation_(std::move(incarnation)), most_entries_(most_entries) {}

void RevisionLog::Add(const Entry& entry) {
  ++revision_;
  entries_.push_back(entry);
  if (entries_.size() > most_entries_) entries_.pop_front();
}

void RevisionLog::Take(const std::vector<Change>& changes, const TunerState& state) {
  // By what has changed, with one entry each.
  std::map<std::pair<StudyId, TrialId>, Entry> touched;
  std::vector<ReportedValue> values;
  for (const Change& change : changes) {
    const Touched by = std::visit([](const auto& c) { return TouchedBy(c); }, change);
    ChangedTrial of{.id = by.trial, .study = by.study};
    if (by.trial) {
      const auto trial = state.trials.find(by.trial);
      if (trial == state.trials.end()) continue;  // deleted with its study, which has its change
      of.study = trial->second.study;
      of.number = trial->second.number;
    } else if (!by.study && !by.pool) {
      continue;
    }
    Entry& entry = touched[{of.study, of.id}];
    entry.trial = of;
    entry.pool |= by.pool;
    entry.decisions |= by.decisions;
    if (const auto* told = std::get_if<ValueReported>(&change)) {
      values.push_back({.revision = 0, .trial = of, .value = told->value});
    }
  }
  if (touched.empty()) return;
  const std::lock_guard lock(mutex_);
  std::map<TrialId, std::int64_t> revisions;  // of trials with values
  for (const auto& [key, entry] : touched) {
    Add(entry);
    if (!values.empty()) revisions[entry.trial.id] = revision_;
  }
  for (ReportedValue& value : values) value.revision = revisions.at(value.trial.id);
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return a.revision < b.revision; });
  for (const ReportedValue& value : values) {
    values_.push_back(value);
    if (values_.size() <= kMaxLogValues) continue;
    values_forgotten_ = values_.front().revision;
    values_.pop_front();
  }
  if (wake_) wake_();
}

void RevisionLog::TakePool() {
  const std::lock_guard lock(mutex_);
  Add({.trial = {}, .pool = true});
  if (wake_) wake_();
}

void RevisionLog::WakeBy(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

std::int64_t RevisionLog::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

RevisionLog::News RevisionLog::Since(std::int64_t revision, std::optional<StudyId> study,
                                     std::size_t most_trials) const {
  const std::lock_guard lock(mutex_);
  News news;
  news.revision = revision_;
  news.complete = revision >= forgotten() && revision <= revision_;
  if (!news.complete) return news;
  std::set<StudyId> studies;
  std::set<TrialId> trials;
  for (std::int64_t at = revision + 1; at <= revision_; ++at) {
    const Entry& entry = entries_[static_cast<std::size_t>(at - forgotten() - 1)];
    if (study && entry.trial.study != *study) {
      news.pool |= entry.pool;
      continue;
    }
    if (entry.trial.id && !trials.contains(entry.trial.id)) {
      if (trials.size() == most_trials) {
        news.revision = at - 1;
        news.more = true;
        break;
      }
      trials.insert(entry.trial.id);
      news.trials.push_back(entry.trial);
    }
    if (entry.trial.study) studies.insert(entry.trial.study);
    news.pool |= entry.pool;
    news.decisions |= entry.decisions;
  }
  news.studies.assign(studies.begin(), studies.end());
  return news;
}

RevisionLog::Values RevisionLog::ValuesIn(std::int64_t after, std::int64_t until,
                                          std::optional<StudyId> study, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  Values found;
  found.more = values_forgotten_ > after;
  for (auto value = values_.rbegin(); value != values_.rend(); ++value) {
    if (value->revision <= after) break;
    if (value->revision > until) continue;
    if (study && value->trial.study != *study) continue;
    if (found.values.size() == most) {
      found.more = true;
      break;
    }
    found.values.push_back(*value);
  }
  std::reverse(found.values.begin(), found.values.end());
  return found;
}

}  // namespace espalier
