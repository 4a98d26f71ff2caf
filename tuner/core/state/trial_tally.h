#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/state/study.h"

namespace espalier {

using TermsOfNodes = std::map<NodeId, std::vector<NodeTerms>>;

// Calls see(terms, us) for each of the node's terms that hold in the time from `from` to `to`, with
// their index and how long they do. The first terms count for what was before them, too, and for
// all time while none have been told.
template <typename See>
void ForEachTerms(const std::vector<NodeTerms>* told, Time from, Time to, See see) {
  const std::size_t known = told == nullptr ? 0 : told->size();
  for (std::size_t i = 0; i < std::max<std::size_t>(1, known); ++i) {
    const Time begin = i == 0 ? from : std::max(from, (*told)[i].since);
    const Time end = i + 1 < known ? std::min(to, (*told)[i + 1].since) : to;
    if (begin < end) see(i, end.us - begin.us);
  }
}

// What the trials of a study amount to, so that nobody has to walk over them to know it. A part of
// TunerState, whose Apply keeps it: it says at every moment what a walk would find.
class TrialTally {
 public:
  struct Best {
    std::int64_t number = 0;
    double value = 0;
    bool complete = false;  // one that is not stands in while none is

    friend bool operator==(const Best&, const Best&) = default;
  };
  // Slots of a node, held and given back.
  struct Held {
    std::vector<std::int64_t> us;  // by the node's terms
    Time until;                    // when the last one was given back

    friend bool operator==(const Held&, const Held&) = default;
  };

  // Complete trials that had a parameter; those of them whose programs told that they had not
  // asked for it (UnreadAttribute).
  struct Readers {
    std::int64_t complete = 0;
    std::int64_t unread = 0;

    friend bool operator==(const Readers&, const Readers&) = default;
  };

  // When a trial held slots at all: from its first span to its newest one, whose end is zero while
  // it lasts. Both are zero for one that never has.
  struct HeldTime {
    Time from;
    Time to;

    friend bool operator==(const HeldTime&, const HeldTime&) = default;
  };
  // Trials that keep to their constraints and those that break one, of those that have told.
  struct Kept {
    std::int64_t keep = 0;
    std::int64_t breaks = 0;

    friend bool operator==(const Kept&, const Kept&) = default;
  };
  struct Failure {
    Time at;
    TrialId trial;

    friend auto operator<=>(const Failure&, const Failure&) = default;
  };
  static constexpr std::size_t kFailuresKept = 20;

  TrialTally() = default;
  explicit TrialTally(const StudySpec& spec);

  std::int64_t count(TrialState state) const { return by_state_[static_cast<std::size_t>(state)]; }
  std::int64_t ended() const;
  // Trials' worth of work done: an ended trial is one, another the share of its steps. In a
  // population what a pruned member has done is in the clone that goes on in its place, so all of
  // its members are as far as those are on average that have told how far.
  double done() const;
  const std::optional<Best>& best() const { return best_; }
  // Whether any was in a group of replicas; whether any has told values or is complete.
  bool any_in_group() const { return in_group_ > 0; }
  bool any_at_work() const { return at_work_ > 0; }
  // By parameter, of trials that the pool runs.
  const std::map<std::string, Readers>& readers() const { return readers_; }
  // Slots times time, of those given back.
  double slot_seconds() const;
  const std::map<NodeId, Held>& held() const { return held_; }
  // Those that hold slots, by their newest span.
  const std::set<TrialId>& holders() const { return holders_; }
  const Kept& kept() const { return kept_; }
  // By trial number.
  const std::vector<HeldTime>& held_times() const { return held_times_; }
  // The newest ones, kFailuresKept at the most, oldest first; without trials that were cancelled.
  const std::vector<Failure>& failures() const { return failures_; }

  // A trial that is new, or has been changed since it was left out.
  void Add(const StudySpec& spec, const Trial& trial) { Count(spec, trial, 1); }
  void LeaveOut(const StudySpec& spec, const Trial& trial) { Count(spec, trial, -1); }
  // Looks at a trial that has been added: whether it is the best one now. False: the best one was
  // lost by that, and all must be ranked again.
  bool Rank(const Trial& trial);
  // The same for a trial that goes on and has told one more value: none can be lost by that.
  void RankValue(const Trial& trial, double value);
  void ForgetBest() { best_.reset(); }
  // The span has ended, or was there before.
  void AddSpan(const SlotSpan& span, const TermsOfNodes& terms);
  // Whether the trial holds slots, and since when it has: its spans have changed.
  void NoteSpans(const Trial& trial);
  // Whether slots of the node were held after that moment: what was held is then divided otherwise
  // by terms that hold from there on.
  bool HeldAfter(NodeId node, Time moment) const;

  friend bool operator==(const TrialTally&, const TrialTally&) = default;

 private:
  void Count(const StudySpec& spec, const Trial& trial, int sign);
  void CountReaders(const Trial& trial, int sign);
  void CountFailure(const Trial& trial, int sign);
  bool Beats(const Best& one) const;

  Direction direction_ = Direction::kMinimize;
  bool ranked_ = true;  // there is no best of several directions
  bool of_pool_ = false;
  std::int64_t max_step_ = 0;
  std::int64_t members_ = 0;  // of the population; 0: it is none
  std::array<std::int64_t, 6> by_state_{};
  std::int64_t steps_ = 0;   // of trials that have not ended
  std::int64_t placed_ = 0;  // of these, those whose share of the work is known
  std::int64_t in_group_ = 0;
  std::int64_t at_work_ = 0;
  std::map<std::string, Readers> readers_;
  std::optional<Best> best_;
  std::int64_t slot_us_ = 0;
  std::map<NodeId, Held> held_;
  std::set<TrialId> holders_;
  std::vector<HeldTime> held_times_;
  std::vector<Failure> failures_;
  Kept kept_;
};

}  // namespace espalier
