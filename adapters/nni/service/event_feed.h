#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/core/state/change.h"

namespace espalier::nni {

inline constexpr int kMaxWaiting = 16;              // further ones are answered at once
inline constexpr std::size_t kMaxTrialsTold = 512;  // in one answer

// What has changed in NNI's experiments, by a count that each study has: a request for news does
// not look at trials that have none. Nothing of it is stored; after a restart the count starts anew
// under another name (incarnation), with everything as its first news.
//
// Take is called by the owner of the core after each commit, the rest by any thread. What Since
// says fits the state of the core only on the owner's thread.
class EventFeed {
 public:
  explicit EventFeed(std::string incarnation);

  void Load(const TunerState& state);
  void Take(const std::vector<Change>& changes, const TunerState& state);

  // Answers all callers that wait; from now on none waits.
  void Close();

  // What a client keeps: "<incarnation>:<revision>".
  std::string Cursor(std::int64_t revision) const;
  // 0, the beginning, of what is no cursor of this incarnation.
  std::int64_t RevisionOf(std::string_view cursor) const;

  // Waits until the study has news after `revision`, at most wait_s.
  void Await(StudyId study, std::int64_t revision, double wait_s);

  // What is new of a trial. Each key is told once, in the order of the reports.
  struct TrialNews {
    TrialId trial;
    std::vector<std::string> metrics;  // attributes that hold what it reported by its channel
    std::vector<std::int64_t> steps;   // of its curve
    // Values of the curve that were told before, and whether any report came by the channel.
    std::int64_t steps_before = 0;
    bool by_channel = false;
    bool ended = false;  // in this time
    std::string name{};  // NNI's id of it
  };
  struct News {
    std::int64_t revision = 0;  // up to here
    std::vector<TrialNews> trials;
  };
  News Since(StudyId study, std::int64_t revision) const;
  // All of one trial.
  TrialNews WholeOf(StudyId study, TrialId trial) const;

  // NNI's id of the trial: the first that it had, whatever has been written over it since. Empty:
  // it has none, or one that another trial had before.
  std::string NameOf(StudyId study, TrialId trial) const;

  // By its NNI id; a zero id if there is none.
  TrialId Find(StudyId study, const std::string& trial) const;

 private:
  struct TrialRecord {
    std::string name;
    std::int64_t revision = 0;
    std::int64_t ended = 0;  // the revision in which it did, 0: has not
    std::vector<std::pair<std::int64_t, std::string>> metrics;  // by revision
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;   // by revision
  };
  struct StudyRecord {
    std::int64_t revision = 0;
    std::map<TrialId, TrialRecord> trials;
    std::map<std::int64_t, TrialId> by_revision;
    std::map<std::string, TrialId> by_name;
  };

  static bool HasName(StudyRecord& study, const Trial& trial);
  void Touch(StudyRecord& study, const Trial& trial);
  static TrialNews NewsOf(TrialId id, const TrialRecord& record, std::int64_t revision);

  const std::string incarnation_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<StudyId, StudyRecord> studies_;
  int waiting_ = 0;
  bool closed_ = false;
};

}  // namespace espalier::nni
