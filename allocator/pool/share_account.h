#pragma once

#include <map>

#include "base/ids.h"

namespace espalier {

// What one study has of a pool at a moment.
struct StudyUse {
  double share = 1;
  int held = 0;  // slots
  bool wants_more =
      false;            // has a trial that waits, or could draw one, and the pool has room for it
  int trial_slots = 1;  // the least that one trial of it can have
  bool rigid = false;   // and the most
  double trial_s = 60;  // for which one trial holds its slots
};

// Slot-time that studies of a pool have had beside what their shares give them. A pool is divided
// evenly at each moment where that can be; where a trial of several slots is more than its study's
// part, or no whole number of trials that cannot be resized comes near to it, studies take turns:
// over time each has its part all the same. Pure; one owner.
class ShareAccount {
 public:
  // Counts the time since the last call, in which studies had what was said then, if they had to
  // take turns in it. A study that is new owes nothing; one that is missing is forgotten. Nobody
  // owes or is owed more than a few trials of its part: what lies long back is not made up for.
  void Advance(double now_s, int slots, std::map<StudyId, StudyUse> uses);
  // The same where nothing has changed.
  void Advance(double now_s);

  // Slot-seconds that the study has had less than its share; negative: more.
  double Owed(StudyId study) const;
  // The same as seconds of its part of the pool.
  double OwedSeconds(StudyId study) const;
  // Whether the study has anything to gain from a turn.
  bool WantsMore(StudyId study) const;
  // Whether studies have to take turns: whether the part of some study that wants more is less than
  // one trial, or differs by more than a tenth from any whole number of trials of one size.
  bool uneven() const { return uneven_; }

 private:
  // `slots` divided by shares; who wants no more than its part keeps to what it holds, and the
  // others divide the rest.
  std::map<StudyId, double> Parts(double slots) const;

  double now_s_ = 0;
  std::map<StudyId, StudyUse> uses_;
  std::map<StudyId, double> parts_;  // of the whole pool
  bool uneven_ = false;
  std::map<StudyId, double> owed_;
};

}  // namespace espalier
