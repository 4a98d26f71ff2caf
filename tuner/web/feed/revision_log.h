#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/core/state/change.h"

namespace espalier {

inline constexpr std::size_t kMaxLogEntries = 65536;
inline constexpr std::size_t kMaxLogValues = 8192;

// What has changed in the service, by a count, so that a page reads again only what is new. Nothing
// of it is stored, and it forgets what is old: a page that was away for longer reads all again. The
// count begins anew with each start of the service, under another name (incarnation).
//
// Take is called by the owner of the core after each commit, the rest by any thread. On the owner's
// thread revision() is that of the state of the core.
class RevisionLog {
 public:
  // `most_entries`: so many are kept.
  explicit RevisionLog(std::string incarnation, std::size_t most_entries = kMaxLogEntries);

  // Takes a few steps for each change, whoever looks.
  void Take(const std::vector<Change>& changes, const TunerState& state);
  // The pool has become another, which no change tells: nodes come and go.
  void TakePool();

  // Calls `wake` when there is news, under a lock: it must be quick, and must not call this class.
  // Null: no more.
  void WakeBy(std::function<void()> wake);

  const std::string& incarnation() const { return incarnation_; }
  std::int64_t revision() const;

  struct ChangedTrial {
    TrialId id;
    StudyId study;
    std::int64_t number = 0;

    friend bool operator==(const ChangedTrial&, const ChangedTrial&) = default;
  };
  struct News {
    std::int64_t revision = 0;         // up to here
    bool complete = true;              // false: not all of it is known any more
    bool more = false;                 // there is more after `revision`
    std::vector<StudyId> studies;      // that have changed, or one of whose trials has
    std::vector<ChangedTrial> trials;  // each once, in the order of their first changes
    bool pool = false;
    bool decisions = false;

    bool any() const { return pool || !studies.empty(); }
  };
  // Of one study, or of all; that of the pool is always told. Ends before the trial that would be
  // one too many.
  News Since(std::int64_t revision, std::optional<StudyId> study, std::size_t most_trials) const;

  struct ReportedValue {
    std::int64_t revision = 0;
    ChangedTrial trial;
    IntermediateValue value;
  };
  // The newest values of the news after `after` and up to `until`, those of each trial in the order
  // in which it told them. `more`: some are left out.
  struct Values {
    std::vector<ReportedValue> values;
    bool more = false;
  };
  Values ValuesIn(std::int64_t after, std::int64_t until, std::optional<StudyId> study,
                  std::size_t most) const;

 private:
  // The one at the end of entries_ has the newest revision, the one before it the revision before.
  struct Entry {
    ChangedTrial trial;  // without an id: the study as a whole; without a study: the pool
    bool pool = false;
    bool decisions = false;
  };

  // Requires the lock.
  void Add(const Entry& entry);
  std::int64_t forgotten() const { return revision_ - static_cast<std::int64_t>(entries_.size()); }

  const std::string incarnation_;
  const std::size_t most_entries_;
  mutable std::mutex mutex_;  // guards what follows
  std::int64_t revision_ = 0;
  std::deque<Entry> entries_;
  std::deque<ReportedValue> values_;   // by revision
  std::int64_t values_forgotten_ = 0;  // the revision of the newest value that is not kept
  std::function<void()> wake_;
};

}  // namespace espalier
