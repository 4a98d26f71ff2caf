#include "adapters/nni/service/event_feed.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/names.h"

namespace espalier::nni {

namespace {

bool IsMetric(const std::string& key) { return key.starts_with(kMetric); }

// As they must have been reported: by number, the final one last.
std::vector<std::string> MetricsInOrder(const Trial& trial) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : trial.attributes.system) {
    if (IsMetric(key)) keys.push_back(key);
  }
  const std::string final = std::string(kMetric) + kFinal;
  std::sort(keys.begin(), keys.end(), [&final](const std::string& a, const std::string& b) {
    return std::tuple(a == final, a.size(), a) < std::tuple(b == final, b.size(), b);
  });
  return keys;
}

// The trial that a front end sees otherwise after the change; zero: none.
template <typename Change>
TrialId TouchedBy(const Change& change) {
  if constexpr (std::is_same_v<Change, TrialCreated> || std::is_same_v<Change, TrialStateChanged> ||
                std::is_same_v<Change, TrialTold> || std::is_same_v<Change, TrialAttributeSet> ||
                std::is_same_v<Change, ValueReported> ||
                std::is_same_v<Change, FinalValueReported> ||
                std::is_same_v<Change, SlotsHeldChanged>) {
    return change.id;
  } else {
    return {};
  }
}

}  // namespace

EventFeed::EventFeed(std::string incarnation) : incarnation_(std::move(incarnation)) {}

// A trial without a name is none of NNI's.
bool EventFeed::HasName(StudyRecord& study, const Trial& trial) {
  if (study.trials.contains(trial.id)) return true;
  std::string name = TextAttribute(trial.attributes, kTrial);
  if (name.empty() || !study.by_name.emplace(name, trial.id).second) return false;
  study.trials[trial.id].name = std::move(name);
  return true;
}

void EventFeed::Touch(StudyRecord& study, const Trial& trial) {
  TrialRecord& record = study.trials[trial.id];
  study.by_revision.erase(record.revision);
  record.revision = ++study.revision;
  study.by_revision.emplace(record.revision, trial.id);
  if (record.ended == 0 && Ended(trial.state)) record.ended = record.revision;
}

void EventFeed::Load(const TunerState& state) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, study] : state.studies) {
    if (!ExperimentOf(study.spec)) continue;
    StudyRecord& record = studies_[id];
    state.ForEachTrial(study, [&](const Trial& trial) {
      if (!HasName(record, trial)) return;
      Touch(record, trial);
      TrialRecord& of_trial = record.trials[trial.id];
      for (std::string& key : MetricsInOrder(trial)) {
        of_trial.metrics.emplace_back(of_trial.revision, std::move(key));
      }
      for (const IntermediateValue& value : trial.values) {
        of_trial.steps.emplace_back(of_trial.revision, value.step);
      }
    });
  }
}

void EventFeed::Take(const std::vector<Change>& changes, const TunerState& state) {
  std::set<TrialId> touched;
  std::vector<StudyId> deleted;
  for (const Change& change : changes) {
    const TrialId id = std::visit([](const auto& c) { return TouchedBy(c); }, change);
    if (id) touched.insert(id);
    if (const auto* gone = std::get_if<StudyDeleted>(&change)) deleted.push_back(gone->id);
  }
  const std::lock_guard lock(mutex_);
  for (const StudyId id : deleted) studies_.erase(id);
  for (const TrialId id : touched) {
    const auto trial = state.trials.find(id);
    if (trial == state.trials.end()) continue;
    if (!ExperimentOf(state.studies.at(trial->second.study).spec)) continue;
    StudyRecord& study = studies_[trial->second.study];
    if (HasName(study, trial->second)) Touch(study, trial->second);
  }
  for (const Change& change : changes) {
    const auto record_of = [&](TrialId id) -> TrialRecord* {
      const auto trial = state.trials.find(id);
      if (trial == state.trials.end()) return nullptr;
      const auto study = studies_.find(trial->second.study);
      if (study == studies_.end()) return nullptr;
      const auto record = study->second.trials.find(id);
      return record == study->second.trials.end() ? nullptr : &record->second;
    };
    if (const auto* set = std::get_if<TrialAttributeSet>(&change); set && IsMetric(set->key)) {
      if (TrialRecord* record = record_of(set->id)) {
        record->metrics.emplace_back(record->revision, set->key);
      }
    } else if (const auto* value = std::get_if<ValueReported>(&change)) {
      if (TrialRecord* record = record_of(value->id)) {
        record->steps.emplace_back(record->revision, value->value.step);
      }
    }
  }
  changed_.notify_all();
}

void EventFeed::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::string EventFeed::Cursor(std::int64_t revision) const {
  return absl::StrCat(incarnation_, ":", revision);
}

std::int64_t EventFeed::RevisionOf(std::string_view cursor) const {
  const std::size_t colon = cursor.find(':');
  if (colon == std::string_view::npos || cursor.substr(0, colon) != incarnation_) return 0;
  std::int64_t revision = 0;
  const char* end = cursor.data() + cursor.size();
  const auto [stop, error] = std::from_chars(cursor.data() + colon + 1, end, revision);
  return error == std::errc() && stop == end && revision > 0 ? revision : 0;
}

void EventFeed::Await(StudyId study, std::int64_t revision, double wait_s) {
  std::unique_lock lock(mutex_);
  if (waiting_ >= kMaxWaiting) return;
  ++waiting_;
  changed_.wait_for(lock, std::chrono::duration<double>(wait_s), [&] {
    const auto record = studies_.find(study);
    return closed_ || (record != studies_.end() && record->second.revision > revision);
  });
  --waiting_;
}

EventFeed::TrialNews EventFeed::NewsOf(TrialId id, const TrialRecord& record,
                                       std::int64_t revision) {
  TrialNews news{.trial = id,
                 .metrics = {},
                 .steps = {},
                 .steps_before = 0,
                 .by_channel = !record.metrics.empty(),
                 .ended = record.ended > revision,
                 .name = record.name};
  for (const auto& [at, key] : record.metrics) {
    if (at > revision) news.metrics.push_back(key);
  }
  for (const auto& [at, step] : record.steps) {
    at > revision ? news.steps.push_back(step) : void(++news.steps_before);
  }
  return news;
}

EventFeed::News EventFeed::Since(StudyId study, std::int64_t revision) const {
  const std::lock_guard lock(mutex_);
  const auto found = studies_.find(study);
  if (found == studies_.end()) return {};
  const StudyRecord& record = found->second;
  News news{record.revision, {}};
  for (auto it = record.by_revision.upper_bound(revision); it != record.by_revision.end(); ++it) {
    if (news.trials.size() == kMaxTrialsTold) {
      news.revision = std::prev(it)->first;
      break;
    }
    news.trials.push_back(NewsOf(it->second, record.trials.at(it->second), revision));
  }
  return news;
}

EventFeed::TrialNews EventFeed::WholeOf(StudyId study, TrialId trial) const {
  const std::lock_guard lock(mutex_);
  const auto found = studies_.find(study);
  if (found == studies_.end()) return {.trial = trial, .metrics = {}, .steps = {}};
  const auto record = found->second.trials.find(trial);
  if (record == found->second.trials.end()) return {.trial = trial, .metrics = {}, .steps = {}};
  return NewsOf(trial, record->second, 0);
}

std::string EventFeed::NameOf(StudyId study, TrialId trial) const {
  const std::lock_guard lock(mutex_);
  const auto found = studies_.find(study);
  if (found == studies_.end()) return "";
  const auto record = found->second.trials.find(trial);
  return record == found->second.trials.end() ? "" : record->second.name;
}

TrialId EventFeed::Find(StudyId study, const std::string& trial) const {
  const std::lock_guard lock(mutex_);
  const auto found = studies_.find(study);
  if (found == studies_.end()) return {};
  const auto it = found->second.by_name.find(trial);
  return it == found->second.by_name.end() ? TrialId{} : it->second;
}

}  // namespace espalier::nni
