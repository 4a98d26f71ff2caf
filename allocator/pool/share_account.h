#pragma once

#include <map>

#include "base/ids.h"

namespace espalier {

// What one study has of a pool at a moment.
struct StudyUse {
  double share = 1;
  int held = 0;             // slots
  bool wants_more = false;  // has a trial that waits, or could draw one
  int trial_slots = 1;      // the least that one trial of it can have
  bool rigid = false;       // and the most
};

// Slot-time that studies of a pool have had beside what their shares give them. A pool is divided
// evenly at each moment where that can be; where a trial of several slots is more than its study's
// part, or no whole number of trials comes near to it, studies take turns: over time each has its
// part all the same. Pure; one owner.
class ShareAccount {
 public:
  // Counts the time since the last call, in which studies had what was said then. Those that want
  // no more than they hold gain nothing and owe nothing for it; what the others hold is to be
  // divided by their shares. A study that is new owes nothing; one that is missing is forgotten.
  void Advance(double now_s, int slots, std::map<StudyId, StudyUse> uses);

  // Slot-seconds that the study has had less than its share; negative: more. Those of all studies
  // that want more add up to nothing.
  double Owed(StudyId study) const;
  // The same as seconds of its part of the pool.
  double OwedSeconds(StudyId study) const;
  // Whether studies have to take turns: whether some part is less than one trial, or differs by
  // more than a tenth from any whole number of trials of one size.
  bool Uneven() const;

 private:
  // `slots` as they are to be divided among the studies that want more.
  std::map<StudyId, double> Parts(double slots) const;
  // So many hold those that want more, and those that do not.
  double HeldBy(bool wants_more) const;

  double now_s_ = 0;
  int slots_ = 0;
  std::map<StudyId, StudyUse> uses_;
  std::map<StudyId, double> owed_;
};

}  // namespace espalier
